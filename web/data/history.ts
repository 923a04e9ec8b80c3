import { signal } from '@preact/signals';
import type { Frame } from './frame.ts';
import { followFrames } from './live.ts';
import { call, type Source } from './source.ts';

interface Page {
  readonly entries: readonly Frame[];
  readonly next_after?: number;
  readonly history_removed?: unknown;
}

/** Older frames leave, so that the memory of the page stays bounded. */
const framesAtMost = 20_000;
/** They leave together, since the views read everything again then. */
const framesPerCut = 2_000;
const retryMs = 2_000;

const removed = 'Older entries were removed.';

export const openServerHistory: Source['openHistory'] = (taskId) => {
  const frames = signal<readonly Frame[]>([]);
  const missing = signal<string | null>(null);
  const isRead = signal(false);
  let waiting: Frame[] = [];
  let isClosed = false;
  const add = (more: readonly Frame[]): void => {
    const last = frames.value.at(-1)?.seq ?? 0;
    const fresh = more.filter(({ seq }) => seq > last);
    if (fresh.length === 0) return;
    const all = [...frames.value, ...fresh];
    const isFull = all.length > framesAtMost + framesPerCut;
    if (isFull) missing.value = removed;
    frames.value = isFull ? all.slice(-framesAtMost) : all;
  };
  const read = async (): Promise<void> => {
    isRead.value = false;
    let after: number | undefined = frames.value.at(-1)?.seq ?? 0;
    while (after !== undefined && !isClosed) {
      const page: Page = await call('history', { task_id: taskId, after_seq: after, limit: 1_000 });
      if (page.history_removed !== undefined) missing.value = removed;
      add(page.entries);
      after = page.next_after;
    }
    isRead.value = true;
    add(waiting);
    waiting = [];
  };
  const readAgain = (): void =>
    void read().catch(() => {
      if (!isClosed) setTimeout(readAgain, retryMs);
    });
  const leave = followFrames({
    onFresh: readAgain,
    onFrames: (all) => {
      const own = all.filter(({ task_id }) => task_id === taskId);
      if (isRead.value) add(own);
      else waiting.push(...own);
    },
  });
  readAgain();
  return {
    frames,
    missing,
    isRead,
    close: () => {
      isClosed = true;
      leave();
    },
  };
};
