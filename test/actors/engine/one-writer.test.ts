import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSharedWorkspace } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import { fakeAssistants, runsIn } from '../../support/assistants.ts';
import {
  finish,
  hang,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const bash = (command: string): Turn => ({ calls: [{ tool: 'bash', arguments: { command } }] });

/** A project folder that all attempts share, in which one of them writes at a time. */
const start = (setting: Setting): Promise<Running> =>
  startSystem({
    workspace: async (projectRoot) => createSharedWorkspace({ projectRoot, sandboxed: true }),
    ...setting,
  });

const run = async ({ service }: Running, description = 'Change the folder'): Promise<string> => {
  const { task_id } = await service.create({ description });
  await service.execute({ task: task_id, role: 'engineer', options: {} });
  return task_id;
};

const framesOf = ({ store }: Running, taskId: string) =>
  store
    .read({ taskId, after: 0, limit: 1_000 })
    .map(({ type, data }) => ({ type, data: JSON.parse(data) }));

const untilItWaits = async (running: Running, taskId: string): Promise<void> => {
  const waits = (): boolean =>
    framesOf(running, taskId).some(({ data }) => String(data.message).startsWith('waiting: ano'));
  while (!waits()) await delay(10);
};

const untilThere = async ({ root }: Running, name: string): Promise<void> => {
  while (!existsSync(join(root, name))) await delay(10);
};

test('one attempt after the other changes the folder, and the one that waits says so', {
  tags: ['slow'],
}, async () => {
  const alone = bash('test ! -e busy && touch busy && sleep 0.3 && rm busy');
  const running = await start({ turns: [alone, alone, finish()] });

  const tasks = [await run(running), await run(running), await run(running)];
  for (const task of tasks) await untilStatus(running, task, 'complete');

  const ends = tasks.flatMap((task) =>
    framesOf(running, task).filter(({ type }) => type === 'tool_end'),
  );
  const calls = ends.filter(({ data }) => data.tool === 'bash');
  expect(calls.map(({ data }) => data.ok)).toEqual(calls.map(() => true));
  expect(calls).toHaveLength(6);
  expect(
    framesOf(running, tasks[1] ?? '').some(({ data }) =>
      String(data.message).startsWith('waiting: ano'),
    ),
  ).toBe(true);
});

test('without a sandbox commands of several attempts run at once', async () => {
  const meet = bash(
    'mktemp here.XXXXXX; while test "$(ls | grep -c here)" -lt 2; do sleep 0.02; done',
  );
  const running = await startSystem({ turns: [meet, finish()] });

  const tasks = [await run(running), await run(running)];

  for (const task of tasks) await untilStatus(running, task, 'complete');
});

test('one that waits is cancelled at once, and what it waited to do is never done', async () => {
  const running = await start({ turns: [hang, finish()] });
  const first = await run(running);
  await untilThere(running, 'pid');
  const second = await run(running);
  await untilItWaits(running, second);

  await running.service.cancel(second, null);
  await untilStatus(running, second, 'cancelled');

  expect(running.store.tasks('pending').map(({ taskId }) => taskId)).toEqual([first]);
  await running.service.cancel(first, null);
  await untilStatus(running, first, 'cancelled');
  rmSync(join(running.root, 'pid'));
  const third = await run(running);
  await untilThere(running, 'pid');
  await running.service.cancel(third, null);
  expect((await untilStatus(running, third, 'cancelled')).status).toBe('cancelled');
});

test('a call that waited when the server stopped was not begun: nobody is asked about it', async () => {
  const running = await start({ turns: [bash('if mkdir first; then sleep 600; fi'), finish()] });
  await run(running);
  await untilThere(running, 'first');
  const second = await run(running);
  await untilItWaits(running, second);
  await running.stop();

  const again = await start({
    turns: [bash('if mkdir first; then sleep 600; fi'), finish()],
    root: running.root,
    stateDir: running.stateDir,
  });

  await untilStatus(again, second, 'complete');
  expect(
    framesOf(again, second).filter(
      ({ type, data }) => type === 'tool_end' && data.tool === 'bash' && data.ok,
    ),
  ).toHaveLength(1);
});

test('an assistant is a writer for as long as it runs', async () => {
  const running = await start({ assistants: fakeAssistants(), options: { backend: 'command' } });
  const first = await run(running, 'play: hang');
  while (runsIn(running.root).length === 0) await delay(10);
  const second = await run(running);
  await untilItWaits(running, second);

  expect(runsIn(running.root)).toHaveLength(1);
  await running.service.cancel(first, null);
  await untilStatus(running, second, 'complete');
  expect(runsIn(running.root)).toHaveLength(2);
});
