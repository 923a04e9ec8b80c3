import { randomUUID } from 'node:crypto';
import type { Delegated, Spent } from '../../machines/agent/agent-context.ts';
import type { AttemptKey } from '../../machines/task.ts';
import type { PermissionCall } from '../assistants/port.ts';

export type EndedRun = Exclude<Delegated, { kind: 'asks' }>;

export interface RunHold {
  /** Ends the assistant. */
  readonly signal: AbortSignal;
  /** Waits for a person. False when the run is stopped. */
  readonly askPermission: (call: PermissionCall) => Promise<boolean>;
  /** True from a question to its answer. */
  readonly isWaiting: () => boolean;
}

export interface BegunWork {
  readonly end: Promise<EndedRun>;
  readonly takeSpent: () => Spent;
}

/** The assistants that run. One that asks for permission stays while a person decides. */
export interface LiveRuns {
  begin(key: AttemptKey, work: (hold: RunHold) => BegunWork): void;
  has(key: AttemptKey): boolean;
  answer(key: AttemptKey, allowed: boolean): void;
  /** The next question, or the end. The signal ends the assistant. */
  next(key: AttemptKey, signal: AbortSignal): Promise<Delegated>;
  /**
   * Ends the assistant of an attempt; the answer to its question then goes to a new one. Resolves with
   * how it ended, or null.
   */
  stop(key: AttemptKey): Promise<EndedRun | null>;
  stopAll(): void;
}

interface OpenQuestion {
  readonly call: PermissionCall;
  readonly resolve: (allowed: boolean) => void;
}

/** Each holds the memory of a program. */
const mostWaiting = 8;
const shownLengthAtMost = 4_000;
export const shownArguments = (call: PermissionCall): string =>
  call.arguments.slice(0, shownLengthAtMost);

const createLiveRun = (work: (hold: RunHold) => BegunWork, onEnd: (isWaiting: boolean) => void) => {
  const abort = new AbortController();
  let queue: readonly OpenQuestion[] = [];
  let open: OpenQuestion | null = null;
  let wake = (): void => {};

  const { end, takeSpent } = work({
    signal: abort.signal,
    isWaiting: () => open !== null,
    askPermission: (call) =>
      new Promise((resolve) => {
        if (abort.signal.aborted) return resolve(false);
        queue = [...queue, { call, resolve }];
        wake();
      }),
  });
  const stop = (): void => {
    abort.abort();
    for (const { resolve } of [...(open === null ? [] : [open]), ...queue]) resolve(false);
    queue = [];
  };
  let isOver = false;
  const noteEnd = (): void => {
    isOver = true;
    onEnd(open !== null && !abort.signal.aborted);
  };
  end.then(noteEnd, noteEnd);

  const ask = (question: OpenQuestion): Delegated => {
    open = question;
    return {
      kind: 'asks',
      questionId: randomUUID().slice(0, 8),
      call: {
        call_id: question.call.callId,
        tool: question.call.tool,
        arguments: shownArguments(question.call),
      },
      spent: takeSpent(),
    };
  };
  return {
    end,
    stop,
    isWaiting: () => open !== null,
    answer: (allowed: boolean) => {
      open?.resolve(allowed);
      open = null;
    },
    next: async (signal: AbortSignal): Promise<Delegated> => {
      signal.addEventListener('abort', stop, { once: true });
      if (signal.aborted) stop();
      try {
        for (;;) {
          const woken = new Promise<null>((resolve) => {
            wake = () => resolve(null);
          });
          if (isOver) return await end;
          const [question, ...rest] = queue;
          if (question !== undefined) {
            queue = rest;
            return ask(question);
          }
          const ended = await Promise.race([end, woken]);
          if (ended !== null) return ended;
        }
      } finally {
        signal.removeEventListener('abort', stop);
      }
    },
  };
};

/** `onEndWhileAsking`: an assistant ended by itself before a person decided. */
export const createLiveRuns = (onEndWhileAsking: (key: AttemptKey) => void): LiveRuns => {
  const runs = new Map<AttemptKey, ReturnType<typeof createLiveRun>>();
  const drop = (key: AttemptKey, run: ReturnType<typeof createLiveRun>): void => {
    if (runs.get(key) === run) runs.delete(key);
  };
  const keepFew = (): void => {
    const waiting = [...runs.values()].filter((run) => run.isWaiting());
    if (waiting.length > mostWaiting) waiting[0]?.stop();
  };

  return {
    begin: (key, work) => {
      const run = createLiveRun(work, (wasAsking) => {
        if (wasAsking) onEndWhileAsking(key);
        else if (run.isWaiting()) drop(key, run);
      });
      runs.set(key, run);
    },
    has: (key) => runs.has(key),
    answer: (key, allowed) => runs.get(key)?.answer(allowed),
    next: async (key, signal) => {
      const run = runs.get(key);
      if (run === undefined) throw new Error(`no assistant runs for ${key}`);
      try {
        const delegated = await run.next(signal);
        if (delegated.kind === 'asks') keepFew();
        else drop(key, run);
        return delegated;
      } catch (error) {
        drop(key, run);
        throw error;
      }
    },
    stop: async (key) => {
      const run = runs.get(key);
      if (run === undefined) return null;
      run.stop();
      const ended = await run.end.catch(() => null);
      drop(key, run);
      return ended;
    },
    stopAll: () => {
      for (const run of runs.values()) run.stop();
    },
  };
};
