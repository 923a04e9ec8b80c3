import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import type { TaskId } from '../../machines/task.ts';
import type { Journal } from '../journal/journal.ts';
import {
  type ActorReads,
  type Change,
  ChangeRefusedError,
  type CommitAnswer,
  DatabaseGoneError,
  LeaseLostError,
  type Step,
  StoreError,
} from '../store/port.ts';

const firstPauseMs = 250;
const longestPauseMs = 5_000;

const isLost = (error: unknown): boolean =>
  !(error instanceof StoreError) ||
  error instanceof ChangeRefusedError ||
  error instanceof DatabaseGoneError ||
  error instanceof LeaseLostError;

/**
 * Commits a change, again and again while the store fails: a full disk must not end an attempt that
 * has cost money. It waits as long as `wanted` is not aborted, which the time limit of the attempt
 * does. @throws StoreError at once when it is refused, or nothing can be saved any more
 */
export const commitPatiently = async (
  journal: Pick<Journal, 'commit'>,
  change: Change,
  wanted: AbortSignal | undefined,
): Promise<CommitAnswer> => {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs))
    try {
      return await journal.commit(change);
    } catch (error) {
      if (isLost(error) || wanted === undefined) throw error;
      await delay(pauseMs, undefined, { signal: wanted }).catch(() => {});
      if (wanted.aborted) throw error;
    }
};

/** The steps of one attempt by key: what a call is meant to do, and later what came of it. */
export interface StepLog {
  keys(): readonly string[];
  intentOf<Shape>(key: string, schema: z.ZodType<Shape>): Shape | null;
  resultOf<Shape>(key: string, schema: z.ZodType<Shape>): Shape | null;
  /** Resolves when it is saved. For what a call must find after a crash. */
  write(key: string, intent: unknown, result?: unknown): Promise<void>;
  /**
   * Saves it in one transaction with the next change, which is the first that can follow from it. In
   * an outage it resolves when the step is saved.
   */
  writeWithNext(key: string, intent: unknown, result?: unknown): Promise<void>;
}

/**
 * `wanted` is the signal of the call that waits: until it aborts, a step that cannot be written is
 * tried again.
 */
export const createStepLog = async (
  store: Pick<ActorReads, 'steps'>,
  journal: Pick<Journal, 'commit' | 'gather' | 'problem'>,
  { taskId, attempt }: { readonly taskId: TaskId; readonly attempt: number },
  wanted: () => AbortSignal | undefined = () => undefined,
): Promise<StepLog> => {
  const commit = (change: Change) => commitPatiently(journal, change, wanted());
  let steps = await store.steps(taskId, attempt);
  // An attempt that goes on may have left a result that waits for its commit.
  if (steps.length > 0) {
    await commit({ entries: [] });
    steps = await store.steps(taskId, attempt);
  }
  const known = new Map(steps.map(({ key, intent, result }) => [key, { intent, result }]));
  const stepOf = (key: string, intent: unknown, result: unknown = null): Step => ({
    taskId,
    attempt,
    key,
    intent: JSON.stringify(intent),
    result: result === null ? null : JSON.stringify(result),
  });
  const write: StepLog['write'] = async (...parts) => {
    const step = stepOf(...parts);
    // The commit also makes the buffered frames of this step durable.
    await commit({ entries: [], step });
    known.set(step.key, step);
  };
  return {
    keys: () => [...known.keys()],
    intentOf: (key, schema) => {
      const step = known.get(key);
      return step === undefined ? null : schema.parse(JSON.parse(step.intent));
    },
    resultOf: (key, schema) => {
      const text = known.get(key)?.result ?? null;
      return text === null ? null : schema.parse(JSON.parse(text));
    },
    write,
    writeWithNext: async (...parts) => {
      if (journal.problem() !== null) return await write(...parts);
      const step = stepOf(...parts);
      journal.gather({ entries: [], step });
      known.set(step.key, step);
    },
  };
};
