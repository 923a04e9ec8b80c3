import type { Model, ModelEvent, ToolCall } from '../../src/actors/model/port.ts';
import type { Failure } from '../../src/machines/task.ts';

const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
const answer = (tool: string, args: object): ModelEvent => {
  const call: ToolCall = { id: 'call', tool, arguments: JSON.stringify(args) };
  return { type: 'answered', text: '', calls: [call], truncated: false, usage };
};
const failure = (retryable: boolean): Failure => ({
  code: 'model_failed',
  message: retryable ? 'it is busy' : 'it does not know you',
  facts: {},
  retryable,
});

/** To every comment that a run of the test can give. */
const answers = Array.from({ length: 40 }, (_, at) => ({ comment: at + 1, answer: 'done' }));

/** What a call of the model may be told to end with. */
export const ends = {
  finish: answer('finish', { status: 'done', summary: 'all good', answers }),
  giveUp: answer('finish', { status: 'failed', summary: 'no way' }),
  ask: answer('ask', { question: 'red or blue?' }),
  refuse: { type: 'failed', failure: failure(false) },
  beBusy: { type: 'failed', failure: failure(true) },
} as const satisfies Readonly<Record<string, ModelEvent>>;
export type End = keyof typeof ends;

/**
 * A model whose every call hangs until the test says how it ends; it notes when more are at work
 * than may be.
 */
export const createHeldModel = (cap: number) => {
  const calls = new Map<string, (event: ModelEvent) => void>();
  const faults: string[] = [];

  const wait = (taskId: string, attempt: number, signal: AbortSignal) =>
    new Promise<ModelEvent | null>((resolve) => {
      const key = `${taskId}#${attempt}`;
      if (signal.aborted) return resolve(null);
      const others = [...calls.keys()].filter((other) => other.startsWith(`${taskId}#`));
      if (others.length > 0) faults.push(`${key} is at work beside ${others.join()}`);
      if (calls.size >= cap) faults.push(`${key} is at work beside ${cap} others`);
      const end = (event: ModelEvent | null): void => {
        calls.delete(key);
        resolve(event);
      };
      signal.addEventListener('abort', () => end(null));
      calls.set(key, end);
    });

  const model: Model = {
    name: 'held',
    disclaimer: null,
    async *ask({ asker: { taskId, attempt } }, signal) {
      const event = await wait(taskId, attempt, signal);
      if (event !== null) yield event;
    },
  };
  return {
    model,
    faults,
    isAtWork: (taskId: string, attempt: number): boolean => calls.has(`${taskId}#${attempt}`),
    end: (taskId: string, attempt: number, how: End): void =>
      calls.get(`${taskId}#${attempt}`)?.(ends[how]),
  };
};
export type HeldModel = ReturnType<typeof createHeldModel>;
