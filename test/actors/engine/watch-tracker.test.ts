import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createTrackerWatch } from '../../../src/actors/engine/watch-tracker.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { createEmbeddedTracker } from '../../../src/actors/tracker/embedded.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { finish, hang, startSystem } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test('a change that could not be taken in is seen again by the next look', async () => {
  const tracker = createEmbeddedTracker({ projectRoot: temporaryFolder(), clock: Date.now, random: () => 7 });
  const store = createSqliteStore({ file: ':memory:' });
  const seen: string[] = [];
  const observe = vi.fn(async ({ title }: { title: string }) => seen.push(title) > 0);
  observe.mockRejectedValueOnce(new Error('the disk is full'));
  const looks = vi.spyOn(tracker, 'list');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = createTrackerWatch({ tracker, store, observe, log: () => {} });

  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  await tracker.create({ title: 'one', description: '', dependencies: [], priority: 2, labels: [] });
  for (const look of [2, 3]) {
    vi.advanceTimersToNextTimer();
    await vi.waitFor(() => expect([looks.mock.calls.length, vi.getTimerCount()]).toEqual([look, 1]));
  }

  await watch.stop();
  vi.useRealTimers();
  store.close();
  expect(seen).toEqual(['one']);
});

test('stop waits for the task that is taken in, and no other one is taken in after it', async () => {
  const random = (max: number): number => Math.floor(Math.random() * max);
  const tracker = createEmbeddedTracker({ projectRoot: temporaryFolder(), clock: Date.now, random });
  const store = createSqliteStore({ file: ':memory:' });
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
  const watch = createTrackerWatch({ tracker, store, observe, log: () => {} });
  watch.start();
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  for (const title of ['one', 'two'])
    await tracker.create({ title, description: '', dependencies: [], priority: 2, labels: [] });
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

test('a task that is taken, given back, run and taken again between two looks is taken', async () => {
  const { root, service, tracker } = await startSystem({ turns: [hang] });
  const amy = createEmbeddedTracker({ projectRoot: root, actor: 'amy', clock: () => Date.now(), random: () => 0 });
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
  expect((await service.status(id)).error).toMatchObject({ code: 'tracker_conflict', facts: { holder: 'amy' } });
}, 30_000);

test('a task whose line is away while it runs is shown, ends with a reason, and has it when the line is back', async () => {
  const { root, service } = await startSystem({
    turns: [{ calls: [{ tool: 'bash', arguments: { command: 'while test ! -e go; do sleep 0.02; done' } }] }, finish()],
  });
  const id = (await service.create({ description: 'on another branch' })).task_id;
  const file = join(root, '.beads', 'issues.jsonl');
  await service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(async () => expect((await service.status(id)).phase).toBe('acting'), patience);

  const stashed = readFileSync(file, 'utf8');
  writeFileSync(file, '');
  expect(await service.status(id)).toMatchObject({ status: 'started', phase: 'acting' });
  writeFileSync(join(root, 'go'), '');
  await vi.waitFor(async () => expect(service.status(id)).rejects.toThrow('does not exist'), patience);
  writeFileSync(file, stashed);

  await vi.waitFor(async () => {
    const view = await service.status(id);
    expect(view).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('does not exist') } });
    expect(readFileSync(join(root, view.results_path ?? ''), 'utf8')).toContain('does not exist');
  }, patience);
  expect(await service.retry(id, null, null, null)).toMatchObject({ attempt: 2 });
});
