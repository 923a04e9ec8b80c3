import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createResults } from '../../../src/actors/results/results.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { crash } from '../../support/crash.ts';
import { makeRepository, worktreesOf } from '../../support/git.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import {
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/**
 * The whole output of commands, through the whole system: who may read it, and what it is worth
 * after a crash.
 */

const bash = (...commands: readonly string[]): Turn => ({
  calls: commands.map((command) => ({ tool: 'bash', arguments: { command } })),
});
const workspace: NonNullable<Setting['workspace']> = (root, stateDir) =>
  worktreesOf(root, join(stateDir, 'worktrees'), [], { sandboxed: true });
const sandbox = createBubblewrap({ readPaths: [], network: false });

const create = async ({ service }: Running): Promise<string> =>
  (await service.create({ description: 'a task' })).task_id;
const run = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });
const folderOf = (root: string, id: string): string => join(root, '.beads', 'tasks', `task-${id}`);
const outputs = ({ store }: Running, taskId: string): readonly string[] =>
  store
    .read({ taskId, after: 0, limit: 1_000 })
    .filter(({ type }) => type === 'tool_end')
    .map(({ data }) => JSON.parse(data).output);

testUnless(noSandbox)(
  'a link in place of the logs shows a command nothing and is refused by name',
  { tags: ['slow'] },
  async () => {
    const home = temporaryFolder();
    writeFileSync(join(home, 'key'), 'PRIVATE');
    const root = makeRepository();
    const running = await startSystem({
      root,
      workspace,
      sandbox,
      turns: [bash(`cat ${root}/.beads/tasks/*/logs/key`), finish()],
    });
    const id = await create(running);
    mkdirSync(folderOf(root, id), { recursive: true });
    symlinkSync(home, join(folderOf(root, id), 'logs'));

    await run(running, id);
    await untilStatus(running, id, 'failed');

    expect(outputs(running, id)[0]).toMatch(/No such file/);
    expect((await running.service.status(id)).error?.message).toMatch(
      /logs is a symbolic link; .* remove the link/,
    );
    expect(readdirSync(home)).toEqual(['key']);
  },
);

testUnless(noSandbox)(
  'a later call of the same turn can read the log of an earlier one',
  async () => {
    const root = makeRepository();
    const look = `grep -c . ${root}/.beads/tasks/*/logs/1-1.1.log`;
    const running = await startSystem({
      root,
      workspace,
      sandbox,
      turns: [bash('seq 1 9000', look), finish()],
    });
    const id = await create(running);

    await run(running, id);
    await untilStatus(running, id, 'complete');

    expect(outputs(running, id)[1]).toBe('9000\n[exit code 0]');
  },
);

test('after a crash in the middle of a turn each call has its own log still', async () => {
  const second = 'if test -e made; then seq 100000 109000; else touch made; exec sleep 600; fi';
  const setting: Setting = {
    turns: [bash('seq 1 9000', second), finish()],
    options: { onInterrupted: 'repeat' },
  };
  const first = await startSystem(setting);
  const id = await create(first);
  await run(first, id);
  await vi.waitFor(() => expect(existsSync(join(first.root, 'made'))).toBe(true));

  const next = await startSystem(await crash(first, setting));
  await untilStatus(next, id, 'complete');

  const logs = join(folderOf(next.root, id), 'logs');
  expect(readFileSync(join(logs, '1-1.1.log'), 'utf8').slice(0, 6)).toBe('1\n2\n3\n');
  expect(readFileSync(join(logs, '1-1.2.log'), 'utf8').slice(0, 6)).toBe('100000');
});

test('logs of the attempt before are kept, older ones are not, and other tasks are not told of any', async () => {
  const running = await startSystem({ turns: [bash('seq 1 9000'), finish('no', 'failed')] });
  const id = await create(running);
  await run(running, id);
  for (const attempt of [1, 2]) {
    await vi.waitFor(async () =>
      expect(await running.service.status(id)).toMatchObject({ status: 'failed', attempt }),
    );
    await running.service.retry(id, null, null, null);
  }
  await vi.waitFor(async () =>
    expect(await running.service.status(id)).toMatchObject({ status: 'failed', attempt: 3 }),
  );

  const results = join(folderOf(running.root, id), '30-results.md');
  expect(readdirSync(join(folderOf(running.root, id), 'logs')).sort()).toEqual([
    '.gitignore',
    '2-1.1.log',
    '3-1.1.log',
  ]);
  expect(readFileSync(results, 'utf8')).toContain('- logs/3-1.1.log');
  expect(await createResults(running.root, (text) => text).read(id as TaskId)).not.toMatch(/logs/i);
});
