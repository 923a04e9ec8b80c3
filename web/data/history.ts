import { signal } from '@preact/signals';
import type { Frame } from './frame.ts';
import { followFrames } from './live.ts';
import { createNewest } from './newest.ts';
import { call, type Source } from './source.ts';

interface Page {
  readonly entries: readonly Frame[];
  readonly next_after?: number;
  readonly history_removed?: unknown;
}

/** Of the entries that come while older ones are read; when more come, they are read as well. */
const waitingAtMost = 2_000;
const retryMs = 2_000;

const removed = 'Older entries were removed.';
const leftOut = (taskId: string): string =>
  `Only the newest entries are here; agent logs ${taskId} prints all.`;

export const openServerHistory: Source['openHistory'] = (taskId) => {
  const frames = signal<readonly Frame[]>([]);
  const missing = signal<string | null>(null);
  const isRead = signal(false);
  const newest = createNewest();
  let waiting: readonly Frame[] = [];
  let isBehind = false;
  /** A later reading replaces an earlier one; closing replaces the last. */
  let readings = 0;
  const add = (more: readonly Frame[]): void => {
    const { frames: kept, isCut } = newest(more);
    if (isCut) missing.value = leftOut(taskId);
    frames.value = kept;
  };
  const read = async (nth: number): Promise<void> => {
    for (let isMore = true; isMore; ) {
      const after_seq = frames.value.at(-1)?.seq ?? 0;
      isBehind = false;
      const page: Page = await call('history', { task_id: taskId, after_seq, limit: 1_000 });
      if (nth !== readings) return;
      if (page.history_removed !== undefined) missing.value ??= removed;
      add(page.entries);
      isMore = page.next_after !== undefined || isBehind;
    }
    isRead.value = true;
    add(waiting);
    waiting = [];
  };
  const readOn = (nth: number): void =>
    void read(nth).catch(() => {
      if (nth === readings) setTimeout(readOn, retryMs, nth);
    });
  const readAgain = (): void => {
    isRead.value = false;
    readings += 1;
    readOn(readings);
  };
  const wait = (own: readonly Frame[]): void => {
    isBehind ||= waiting.length + own.length > waitingAtMost;
    waiting = isBehind ? [] : [...waiting, ...own];
  };
  const leave = followFrames({
    onFresh: readAgain,
    onFrames: (all) => {
      const own = all.filter(({ task_id }) => task_id === taskId);
      if (isRead.value) add(own);
      else wait(own);
    },
  });
  readAgain();
  return {
    frames,
    missing,
    isRead,
    close: () => {
      readings += 1;
      leave();
    },
  };
};
