import { type Signal, signal } from '@preact/signals';
import { call } from './call.ts';
import type { Frame } from './frame.ts';
import { followFrames } from './live.ts';

export interface TaskHistory {
  readonly frames: Signal<readonly Frame[]>;
  /** The server removed what was before. */
  readonly isCut: Signal<boolean>;
  readonly isRead: Signal<boolean>;
  close(): void;
}

interface Page {
  readonly entries: readonly Frame[];
  readonly next_after?: number;
  readonly history_removed?: unknown;
}

/** Older frames leave, so that the memory of the page stays bounded. */
const framesAtMost = 20_000;
const retryMs = 2_000;

/** The whole history of a task, then what happens. */
export const openHistory = (taskId: string): TaskHistory => {
  const frames = signal<readonly Frame[]>([]);
  const isCut = signal(false);
  const isRead = signal(false);
  let waiting: Frame[] = [];
  let isClosed = false;
  const add = (more: readonly Frame[]): void => {
    const last = frames.value.at(-1)?.seq ?? 0;
    const fresh = more.filter(({ seq }) => seq > last);
    if (fresh.length === 0) return;
    const all = [...frames.value, ...fresh];
    isCut.value ||= all.length > framesAtMost;
    frames.value = all.slice(-framesAtMost);
  };
  const read = async (): Promise<void> => {
    isRead.value = false;
    let after: number | undefined = frames.value.at(-1)?.seq ?? 0;
    while (after !== undefined && !isClosed) {
      const page: Page = await call('history', { task_id: taskId, after_seq: after, limit: 1_000 });
      if (page.history_removed !== undefined) isCut.value = true;
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
    isCut,
    isRead,
    close: () => {
      isClosed = true;
      leave();
    },
  };
};
