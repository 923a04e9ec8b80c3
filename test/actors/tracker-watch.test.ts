import { expect, test, vi } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { createEmbeddedTracker } from '../../src/actors/tracker/embedded.ts';
import { createTrackerWatch } from '../../src/actors/tracker-watch.ts';
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
