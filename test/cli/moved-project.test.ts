import { cpSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openGitProject } from '../support/git-project.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** A project with one task whose work is not merged; its server is not running. */
const open = async (more: NodeJS.ProcessEnv) => {
  const turns = [
    { calls: [{ tool: 'write', arguments: { path: 'b.txt', content: 'new\n' } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ];
  const project = openGitProject([{ turns }], { mode: 'worktree' });
  const env = { ...more };
  const id = (await project.agentWith(env, 'create', 'one', '--role', 'engineer')).out.trim();
  await project.agentWith(env, 'run');
  await project.agentWith(env, 'server', 'stop');
  const to = join(temporaryFolder(), 'renamed');
  const at = (...args: string[]) => project.agentWith(env, '--project', to, ...args);
  return { ...project, env, id, to, at };
};

test.each(['AGENT_STATE_DIR', 'XDG_STATE_HOME'])(
  'a project that was renamed has its tasks and their work (%s)',
  { tags: ['slow'] },
  async (name) => {
    const state = temporaryFolder();
    const { root, id, to, at } = await open({ AGENT_STATE_DIR: '', [name]: state });
    renameSync(root, to);

    const diff = await at('diff', id);
    const merged = await at('merge', id);
    const shown = await at('show', id);

    expect(diff).toMatchObject({ code: 0, out: expect.stringContaining('+new') });
    expect([merged.code, existsSync(join(to, 'b.txt'))]).toEqual([0, true]);
    expect(shown.out).toContain('merged');
  },
);

test('a copy of a project takes nothing of the original', { tags: ['slow'] }, async () => {
  const { root, id, to, at, env, agentWith } = await open({
    ...{ AGENT_STATE_DIR: '', XDG_STATE_HOME: temporaryFolder() },
  });
  cpSync(root, to, { recursive: true });

  expect((await at('diff', id)).code).toBe(1);
  expect(await agentWith(env, 'diff', id)).toMatchObject({
    ...{ code: 0, out: expect.stringContaining('+new') },
  });
});
