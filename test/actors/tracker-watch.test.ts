import { expect, test, vi } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { createEmbeddedTracker } from '../../src/actors/tracker/embedded.ts';
import { createTrackerWatch } from '../../src/actors/tracker-watch.ts';
import type { TaskId } from '../../src/machines/task.ts';
import { hang, startSystem } from '../support/running.ts';
import { temporaryFolder } from '../support/temporary.ts';

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

  watch.stop();
  vi.useRealTimers();
  store.close();
  expect(seen).toEqual(['one']);
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
