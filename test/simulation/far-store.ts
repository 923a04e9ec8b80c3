import {
  type Change,
  type Committed,
  type SavedActor,
  type Store,
  StoreError,
} from '../../src/actors/store/port.ts';
import type { SqliteStore } from '../../src/actors/store/sqlite.ts';
import { atOnce } from './at-once.ts';

/** What befalls a commit on its way to the rows and back. */
export type Fate = 'answered' | 'failed before' | 'failed after' | 'stale' | 'lost' | 'late';

export interface FarStorePorts {
  readonly fate: () => Fate;
  /** The next delay (ms). */
  readonly delay: () => number;
  readonly after: (ms: number, run: () => void) => void;
  /** Longer than anybody waits for an answer (ms). */
  readonly lateMs: number;
}

const failure = (): StoreError => new StoreError('the far store failed; try again');

/**
 * The same rows, far away: every commit travels there and back, in order, and not each one arrives.
 */
export const createFarStore = (
  near: SqliteStore,
  { fate, delay, after, lateMs }: FarStorePorts,
): Store => {
  let travelling = Promise.resolve();
  const pause = (ms: number): Promise<void> => new Promise((resolve) => after(ms, resolve));
  /** Runs on the side of the rows, in the order of the calls. */
  const there = <Result>(act: () => Result): Promise<Result> => {
    const result = travelling.then(() => pause(delay())).then(act);
    travelling = result.then(
      () => {},
      () => {},
    );
    return result;
  };
  const back = async <Result>(result: Promise<Result>): Promise<Result> => {
    try {
      return await result;
    } finally {
      await pause(delay());
    }
  };
  /** As if another server had saved the actor meanwhile. */
  const raise = (id: string): void => {
    const saved = near.actor(id);
    if (saved === null) return;
    const { revision: _, owner: __, ...state } = saved;
    atOnce(near.commit({ actor: state, entries: [] }));
  };
  const commits: Readonly<Record<Fate, (changes: readonly Change[]) => Promise<Committed>>> = {
    answered: (changes) => back(there(() => atOnce(near.commit(...changes)))),
    'failed before': async () => {
      await back(there(() => {}));
      throw failure();
    },
    'failed after': async (changes) => {
      await back(there(() => atOnce(near.commit(...changes))));
      throw failure();
    },
    stale: (changes) =>
      back(
        there(() => {
          for (const { actor } of changes) if (actor !== undefined) raise(actor.id);
          return atOnce(near.commit(...changes));
        }),
      ),
    lost: () => new Promise(() => {}),
    late: async (changes) => {
      await pause(lateMs + delay());
      return atOnce(near.commit(...changes));
    },
  };
  /** A read is answered as the rows are when it arrives. */
  const later =
    <Given extends readonly unknown[], Result>(
      read: (...given: Given) => Result | Promise<Result>,
    ) =>
    (...given: Given): Promise<Result> =>
      back(pause(delay()).then(() => read(...given)));
  /** No answer is longer on its way. */
  const answerMs = 50;
  return {
    ...near,
    read: later(near.read),
    kept: later(near.kept),
    latest: later(near.latest),
    decisions: later(near.decisions),
    latestOfPending: later(near.latestOfPending),
    lastSeq: later(near.lastSeq),
    removed: later(near.removed),
    counters: later(near.counters),
    usage: later(near.usage),
    attempts: later(near.attempts),
    actor: later(near.actor),
    steps: later(near.steps),
    tasks: later(near.tasks),
    request: later(near.request),
    rememberAnswer: later(near.rememberAnswer),
    join: later(near.join),
    renew: later(near.renew),
    countRestores: later(near.countRestores),
    forgetRestores: later(near.forgetRestores),
    check: later(near.check),
    subscribe: (listener, subscription) =>
      near.subscribe(
        {
          ...listener,
          entries: async (entries) => {
            await pause(answerMs + delay());
            await listener.entries(entries);
          },
        },
        subscription,
      ),
    commit: (...changes) => commits[fate()](changes),
    takeOver: (id): Promise<SavedActor | null> =>
      back(
        there(() => {
          raise(id);
          return near.actor(id);
        }),
      ),
  };
};
