import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Ledger } from '../../../src/actors/ledger/ledger.ts';
import type { Tracker } from '../../../src/actors/tracker/port.ts';
import type { Workspace } from '../../../src/actors/workspace/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { embeddedAt, writingItself } from '../../support/ledger.ts';
import { finish, hang, startSystem, untilStatus } from '../../support/running.ts';

const minute = 60_000;
const gate = () => {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise(setImmediate);
};

test('a late write of an attempt to the tracker never reopens the task of the next attempt', {
  tags: ['slow'],
}, async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const slow = gate();
  const told: string[] = [];
  const tracker = (root: string, ledger: Ledger): Tracker => {
    const real = embeddedAt(root, {}, ledger);
    return writingItself({
      ...real,
      release: async (...given) => {
        told.push('begun');
        if (told.length === 1) await slow.opened;
        await real.release(...given).catch(() => told.push('refused'));
      },
    });
  };
  const running = await startSystem({ tracker, turns: [hang] });
  const { service } = running;
  const { task_id } = await service.create({ description: 'x' });
  await service.execute({ task: task_id, role: 'engineer', options: {} });
  await until(async () => (await service.status(task_id)).phase === 'acting');
  const cancelled = service.cancel(task_id, null);
  await until(() => told.length === 1);

  onTestFinished(() => void vi.useRealTimers());
  vi.setSystemTime(Date.now() + 3 * minute);
  await untilStatus(running, task_id, 'failed');
  await cancelled;
  const retried = service.retry(task_id, null, null, null);
  for (let n = 0; n < 50; n += 1) await new Promise(setImmediate);
  slow.open();
  await retried;
  await until(async () => (await service.status(task_id)).phase === 'acting');

  expect(told).toContain('refused');
  expect(await running.tracker.find(task_id as TaskId)).toMatchObject({
    status: 'in_progress',
    assignee: 'agent-server',
  });
});

test('a cancel while the worktree is prepared leaves no worktree and no branch', async () => {
  const [asked, slow] = [gate(), gate()];
  let opening: Promise<unknown> = Promise.resolve();
  const workspace = async (root: string, stateDir: string): Promise<Workspace> => {
    const real = await worktreesOf(root, join(stateDir, 'worktrees'));
    return {
      ...real,
      open: (...given) => {
        asked.open();
        const opened = slow.opened.then(() => real.open(...given));
        opening = opened.catch(() => {});
        return opened;
      },
    };
  };
  const running = await startSystem({ root: makeRepository(), workspace, turns: [finish()] });
  const { service } = running;
  const { task_id } = await service.create({ description: 'x' });
  await service.execute({ task: task_id, role: 'engineer', options: {} });
  await asked.opened;

  const cancelling = service.cancel(task_id, null);
  for (let n = 0; n < 50; n += 1) await new Promise(setImmediate);
  slow.open();
  await cancelling;
  await opening;

  expect((await service.status(task_id)).status).toBe('cancelled');
  expect(gitIn(running.root, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(gitIn(running.root, 'branch', '--list', 'agent/*')).toBe('');
});
