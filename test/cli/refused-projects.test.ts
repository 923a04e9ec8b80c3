import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { openProject as openTaskClient } from '../../src/cli/client/node-client.ts';
import { findProject } from '../../src/cli/config/places/project.ts';
import { openProject } from '../support/cli.ts';
import { gitIn } from '../support/git.ts';
import { temporaryFolder } from '../support/temporary.ts';

const entries = [
  ...['engineer look', 'create one', 'create one --no-start', 'list', 'run --async', 'init'],
  ...['doctor --sandbox', 'config', 'token', 'open --print', 'server start'],
  ...['server status', 'server logs', 'watch', 'mcp', 'workflow list', 'merge bd-a1', 'prune'],
];

describe('the home folder', () => {
  test.each(entries)('is no project for: agent %s', async (line) => {
    const { root, stateDir, agentWith } = openProject();
    const before = readdirSync(root);

    const { code, out, err } = await agentWith({ HOME: root }, ...line.split(' '));

    expect(err).toBe(
      `agent: ${root} is your home folder, with keys that no agent may read; go to the folder of your project, or name it with --project\n`,
    );
    expect({ code, out }).toEqual({ code: 78, out: '' });
    expect(readdirSync(root)).toEqual(before);
    expect(existsSync(stateDir)).toBe(false);
  });

  test('is a place from which your file for every project can be changed', async () => {
    const { root, stateDir, agentWith } = openProject();
    const home = { HOME: root, XDG_CONFIG_HOME: join(temporaryFolder(), 'config') };

    const set = await agentWith(home, 'config', 'set', 'agent.max_turns', '7', '--global');
    const bad = await agentWith(home, 'config', 'set', 'agent.max_turns', 'x', '--global');
    const path = await agentWith(home, 'config', 'path', '--global');

    expect(set).toMatchObject({ code: 0, out: expect.stringContaining('wrote agent.max_turns') });
    expect(bad).toMatchObject({ code: 78, err: expect.stringContaining('nothing was written') });
    expect(JSON.parse(readFileSync(path.out.trim(), 'utf8'))).toEqual({ agent: { max_turns: 7 } });
    expect(existsSync(stateDir)).toBe(false);
  });

  test('is no project for agent-server, nor when --project names it, nor for a program', async () => {
    const { root, stateDir, start, collect, env } = openProject();
    const elsewhere = temporaryFolder();
    const own = { ...env, HOME: root };

    const server = await collect(start('agent-server', ['--server', '--project', root], own));
    const named = await collect(start('agent', ['--project', root, '--json', 'list'], own));
    const called = openTaskClient(root, { env: own });

    expect(server).toMatchObject({ code: 78, out: '' });
    expect(server.err).toMatch(`agent-server: ${root} is your home folder`);
    expect(named.code).toBe(78);
    expect(JSON.parse(named.out)).toMatchObject({ error: { code: 'project_refused', path: root } });
    await expect(called).rejects.toMatchObject({ code: 'project_refused' });
    expect([existsSync(stateDir), existsSync(join(root, '.beads'))]).toEqual([false, false]);
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  test('is not taken for the project of a folder in it', () => {
    const home = temporaryFolder();
    const notes = join(home, 'notes');
    for (const folder of [notes, join(home, '.beads')]) mkdirSync(folder);

    expect(findProject(undefined, notes, { HOME: home }).root).toBe(notes);
  });
});

/** Makes the places, and names the folder to use as the project with its environment. */
type Place = (folder: string) => { readonly project: string; readonly env: NodeJS.ProcessEnv };

const below = (folder: string, ...names: string[]): string => {
  const path = join(folder, ...names);
  mkdirSync(path, { recursive: true });
  return path;
};

test.each<[string, RegExp, Place]>([
  ['the root', /^\/ is the root of the file system; /, () => ({ project: '/', env: {} })],
  [
    'a folder that holds the home folder',
    / holds your home folder \(/,
    (folder) => ({ project: folder, env: { HOME: below(folder, 'ann') } }),
  ],
  [
    'the home folder behind a link',
    / is your home folder, /,
    (folder) => {
      const home = below(folder, 'ann');
      symlinkSync(home, join(folder, 'link'));
      return { project: join(folder, 'link'), env: { HOME: home } };
    },
  ],
  [
    'a home folder that is a link to it',
    / is your home folder, /,
    (folder) => {
      const project = below(folder, 'ann');
      symlinkSync(project, join(folder, 'link'));
      return { project, env: { HOME: join(folder, 'link') } };
    },
  ],
  [
    'a folder that holds the state folder of AGENT_STATE_DIR',
    / holds the state folder .*; set AGENT_STATE_DIR /,
    (folder) => ({ project: folder, env: { AGENT_STATE_DIR: join(folder, '.state', 'deep') } }),
  ],
  [
    'a folder with a link on the way to the state folder',
    / holds the state folder /,
    (folder) => {
      const project = below(folder, 'project');
      symlinkSync(below(folder, 'elsewhere'), join(project, 'link'));
      return { project, env: { AGENT_STATE_DIR: join(project, 'link', 'state') } };
    },
  ],
  [
    'a folder that a link on the way to the state folder leads to',
    / holds the state folder /,
    (folder) => {
      const project = below(folder, 'project');
      symlinkSync(below(project, 'state'), join(folder, 'link'));
      return { project, env: { AGENT_STATE_DIR: join(folder, 'link') } };
    },
  ],
  [
    'a folder that holds the state folders of all projects',
    / holds the state folder /,
    (folder) => ({ project: folder, env: { XDG_STATE_HOME: join(folder, 'state') } }),
  ],
  [
    'a folder that holds the configuration folder',
    / holds your configuration folder /,
    (folder) => ({ project: folder, env: { XDG_CONFIG_HOME: join(folder, 'config') } }),
  ],
  [
    'the state folder of another project',
    / lies in .*, which is the server's; /,
    (folder) => ({
      project: below(folder, 'agent-task-server', 'other-1234'),
      env: { XDG_STATE_HOME: folder },
    }),
  ],
])('%s is no project', (_, message, place) => {
  const { project, env } = place(temporaryFolder());

  expect(() => findProject(project, '/', { HOME: '/nonexistent', ...env })).toThrow(message);
});

test('a folder whose repository is the home folder is no project', async () => {
  const home = temporaryFolder();
  const project = below(home, 'work');
  await execa('git', ['init', '-q', home]);
  const message = `${home} is your home folder, with keys that no agent may read, and the repository of ${project}; make the project a repository of its own: git init ${project}`;

  for (const given of [project, undefined])
    expect(() => findProject(given, project, { HOME: home })).toThrow(message);

  await execa('git', ['init', '-q', project]);
  expect(findProject(undefined, project, { HOME: home }).root).toBe(project);
});

describe('a repository that no agent can work in', () => {
  test.each<[string, (root: string) => void, string]>([
    ['a branch named agent', (root) => gitIn(root, 'branch', 'agent'), 'git branch -m agent <'],
    [
      'a hub of worktrees',
      (root) => {
        renameSync(join(root, '.git'), join(root, '.bare'));
        gitIn(join(root, '.bare'), 'config', 'core.bare', 'true');
        writeFileSync(join(root, '.git'), 'gitdir: ./.bare\n');
      },
      'git worktree add main',
    ],
    [
      'borrowed objects',
      (root) => {
        const store = join(temporaryFolder(), 'store');
        gitIn(root, 'clone', '--quiet', '--bare', root, store);
        writeFileSync(join(root, '.git/objects/info/alternates'), `${store}/objects\n`);
      },
      'run git repack -a -d',
    ],
  ])('is refused before an attempt, and by doctor: %s', async (_, make, remedy) => {
    const { root, agent } = openProject({
      api: { backend: 'scripted' },
      workspace: { mode: 'worktree' },
    });
    gitIn(root, 'init', '--quiet');
    gitIn(root, 'commit', '--quiet', '--allow-empty', '-m', 'first');
    make(root);

    const ran = await agent('engineer', 'look around');
    const told = await agent('doctor', '--json');
    const { out } = await agent('list', '--json');
    const [task] = JSON.parse(out);

    expect({ code: ran.code, err: ran.err }).toMatchObject({
      code: 78,
      err: expect.stringContaining(`${root} cannot be worked on: `),
    });
    expect(ran.err).toContain(remedy);
    expect(task).toMatchObject({ status: 'queued', attempt: 0 });
    const { checks } = JSON.parse(told.out);
    const workspace = checks.find(({ check }: { check: string }) => check === 'workspace');
    expect(workspace).toMatchObject({ status: 'problem' });
    expect(workspace.detail).toContain(remedy);
  });
});

test('a bare repository, a folder in it, and the git directory of a project are no projects', async () => {
  const folder = temporaryFolder();
  const [bare, work] = [join(folder, 'bare'), join(folder, 'work')];
  await execa('git', ['init', '-q', '--bare', bare]);
  await execa('git', ['init', '-q', work]);
  const env = { HOME: '/nonexistent' };
  const clone = (path: string) =>
    `clone it, and use the clone as the project: git clone ${path} <folder>`;

  expect(() => findProject(undefined, bare, env)).toThrow(
    `${bare} is a bare git repository, which has no files to work on; ${clone(bare)}`,
  );
  expect(() => findProject(undefined, join(bare, 'hooks'), env)).toThrow(
    `${join(bare, 'hooks')} lies in the git directory ${bare}; ${clone(bare)}`,
  );
  expect(() => findProject(join(work, '.git'), '/', env)).toThrow('is a bare git repository');
  expect(findProject(undefined, join(work, '.git', 'hooks'), env).root).toBe(work);
});
