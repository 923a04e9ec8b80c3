import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createTrackerWatch } from '../../../src/actors/engine/watch-tracker.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { embeddedAt, ledgerAt, somebodyElse } from '../../support/ledger.ts';
import { finish, hang, startSystem } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test('a change that could not be taken in is seen again by the next look', async () => {
  const root = temporaryFolder();
  const ledger = ledgerAt(root);
  const tracker = embeddedAt(root, {}, ledger);
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const seen: string[] = [];
  const observe = vi.fn(async ({ title }: { title: string }) => seen.push(title) > 0);
  observe.mockRejectedValueOnce(new Error('the disk is full'));
  const looks = vi.spyOn(tracker, 'changes');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({
    ...{ tracker, store, observe },
    ...{ isPending: () => false, log: () => {} },
  });

  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  await tracker.create({
    title: 'one',
    description: '',
    dependencies: [],
    priority: 2,
    labels: [],
  });
  await ledger.exchange.flush();
  for (const look of [2, 3]) {
    vi.advanceTimersToNextTimer();
    await vi.waitFor(() =>
      expect([looks.mock.calls.length, vi.getTimerCount()]).toEqual([look, 1]),
    );
  }

  await watch.stop();
  vi.useRealTimers();
  store.close();
  expect(seen).toEqual(['one']);
});

test('stop waits for the task that is taken in, and no other one is taken in after it', async () => {
  const root = temporaryFolder();
  const ledger = ledgerAt(root);
  const tracker = embeddedAt(root, {}, ledger);
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const events: string[] = [];
  let goOn = (): void => {};
  const observe = async ({ title }: { title: string }): Promise<boolean> => {
    events.push(`takes ${title}`);
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    events.push(`took ${title}`);
    return true;
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({
    ...{ tracker, store, observe },
    ...{ isPending: () => false, log: () => {} },
  });
  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  for (const title of ['one', 'two'])
    await tracker.create({ title, description: '', dependencies: [], priority: 2, labels: [] });
  await ledger.exchange.flush();
  vi.advanceTimersToNextTimer();
  await vi.waitFor(() => expect(events).toHaveLength(1));
  vi.useRealTimers();

  const stopped = watch.stop().then(() => events.push('stopped'));
  goOn();
  await stopped;

  store.close();
  expect(events).toEqual([events[0], events[0]?.replace('takes', 'took'), 'stopped']);
});

const patience = { timeout: 10_000, interval: 10 };

test('somebody else takes a task, gives it back and takes it again: each time the attempt stops and names them', async () => {
  const { root, service, tracker, ledger } = await startSystem({ turns: [hang] });
  const amy = somebodyElse(root, 'amy', ledger);
  const id = (await service.create({ description: 'wanted' })).task_id as TaskId;
  const run = () => service.execute({ task: id, role: 'engineer', options: {} });
  const untilPhase = (phase: string) =>
    vi.waitFor(async () => expect((await service.status(id)).phase).toBe(phase), patience);
  const take = async (): Promise<void> => {
    await untilPhase('acting');
    await tracker.release(id, null);
    await amy.claim(id);
  };

  await run();
  await take();
  await untilPhase('started');
  await amy.release(id, null);
  await run();
  await take();

  await untilPhase('started');
  expect((await service.status(id)).error).toMatchObject({
    code: 'tracker_conflict',
    facts: { holder: 'amy' },
  });
}, 30_000);

test('a task whose line is away while it runs goes on, and its line comes back', async () => {
  const { root, service, ledger } = await startSystem({
    turns: [
      {
        calls: [
          { tool: 'bash', arguments: { command: 'while test ! -e go; do sleep 0.02; done' } },
        ],
      },
      finish(),
    ],
  });
  const id = (await service.create({ description: 'on another branch' })).task_id;
  const file = join(root, '.beads', 'issues.jsonl');
  await service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(async () => expect((await service.status(id)).phase).toBe('acting'), patience);
  await ledger.exchange.flush();

  writeFileSync(file, '\n');
  expect(await service.status(id)).toMatchObject({ status: 'started', phase: 'acting' });
  writeFileSync(join(root, 'go'), '');

  await vi.waitFor(
    async () => expect(await service.status(id)).toMatchObject({ status: 'complete' }),
    patience,
  );
  await ledger.exchange.flush();
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ id, status: 'closed' });
});
