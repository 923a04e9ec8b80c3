import type { z } from 'zod';
import type { TaskId } from '../../machines/task.ts';
import type { Journal } from '../journal/journal.ts';
import type { ActorReads } from '../store/port.ts';
import { commitPatiently } from './patient-commit.ts';

/**
 * The steps of one attempt by key. The intent is written before the call, again with the result
 * after it.
 */
export interface StepLog {
  keys(): readonly string[];
  intentOf<Shape>(key: string, schema: z.ZodType<Shape>): Shape | null;
  resultOf<Shape>(key: string, schema: z.ZodType<Shape>): Shape | null;
  write(key: string, intent: unknown, result?: unknown): Promise<void>;
}

/**
 * `wanted` is the signal of the call that waits: until it aborts, a step that cannot be written is
 * tried again.
 */
export const createStepLog = async (
  store: Pick<ActorReads, 'steps'>,
  journal: Pick<Journal, 'commit'>,
  { taskId, attempt }: { readonly taskId: TaskId; readonly attempt: number },
  wanted: () => AbortSignal | undefined = () => undefined,
): Promise<StepLog> => {
  const steps = await store.steps(taskId, attempt);
  const known = new Map(steps.map(({ key, intent, result }) => [key, { intent, result }]));
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
    write: async (key, intent, result = null) => {
      const texts = {
        intent: JSON.stringify(intent),
        result: result === null ? null : JSON.stringify(result),
      };
      // The commit also makes the buffered frames of this step durable.
      const step = { taskId, attempt, key, ...texts };
      await commitPatiently(journal, { entries: [], step }, wanted());
      known.set(key, texts);
    },
  };
};
