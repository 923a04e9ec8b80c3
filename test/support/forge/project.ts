import { expect, vi } from 'vitest';
import { gitIn } from '../git.ts';
import { openGitProject } from '../git-project.ts';
import { openGitHub } from './github.ts';

/** What an agent does that writes one file and is done. */
export const writing = (title: string, path = `${title.at(-1)}.txt`) => ({
  title,
  turns: [
    { calls: [{ tool: 'write', arguments: { path, content: 'x\n' } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'It is there.' } }] },
  ],
});

type Scripts = Parameters<typeof openGitProject>[0];

/** What a server needs to reach a repository. */
interface Reachable {
  readonly remote: string;
  readonly apiUrl: string;
  readonly token: string;
}

/** A project whose remote is at a forge, and a server with its token. */
export const openProjectAt = async <Opened extends Reachable>(
  openForge: (project: string) => Promise<Opened>,
  scripts: Scripts,
  forge: object = {},
  given: Readonly<Record<string, string>> = {},
) => {
  const project = openGitProject(scripts, { mode: 'worktree' }, { ownServer: true });
  const github = await openForge(project.root);
  gitIn(project.root, 'remote', 'add', 'origin', github.remote);
  const settings = { api_url: github.apiUrl, poll_seconds: 1, checks_wait_seconds: 1, ...forge };
  for (const [key, value] of Object.entries(settings))
    await project.agent('config', 'set', `forge.${key}`, JSON.stringify(value));
  const start = (more: Readonly<Record<string, string>> = {}) =>
    project.agentWith({ GITHUB_TOKEN: github.token, ...given, ...more }, 'server', 'start');
  await start();
  const complete = async (title: string): Promise<string> => {
    const id = (await project.agent('create', title)).out.trim();
    await project.agent('engineer', id);
    return id;
  };
  const pr = async (id: string) => JSON.parse((await project.agent('pr', id, '--json')).out);
  const untilPr = (id: string, expected: object) =>
    vi.waitFor(async () => expect((await pr(id)).pull_request).toMatchObject(expected), {
      timeout: 60_000,
      interval: 300,
    });
  return { ...project, github, start, complete, untilPr };
};

export const openForgeProject = (
  scripts: Scripts,
  forge: object = {},
  given: Readonly<Record<string, string>> = {},
  openForge: typeof openGitHub = openGitHub,
) => openProjectAt(openForge, scripts, forge, given);
