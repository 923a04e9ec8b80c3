import { fromPromise, type PromiseActorLogic } from 'xstate';
import { ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import { withTimeout } from '../../process/deadline.ts';

type InvokedWork<Output, Input> = (input: Input, signal: AbortSignal) => Promise<Output>;

/**
 * Runs all work that the task chart invokes. New work of a task waits until the work of states that
 * the task has left has ended, so nothing of an earlier state or attempt runs beside it.
 */
export interface InvokedActors {
  actor<Output, Input extends { readonly taskId: TaskId }>(
    work: InvokedWork<Output, Input>,
  ): PromiseActorLogic<Output, Input>;
  /** Waits until the work of stopped actors of a task has ended. @throws after 20 s */
  whenEnded(taskId: TaskId): Promise<void>;
  /** Waits for the end of all work, at most `ms`. */
  settle(ms: number): Promise<void>;
}

interface StartedWork {
  readonly signal: AbortSignal;
  readonly work: Promise<unknown>;
}

const endWorkMs = 20_000;

/** The chart handles it like an outage of the tracker: it tries again later. */
const tryAgainLater = (taskId: TaskId, cause: unknown): never => {
  const detail = `earlier work of ${taskId} has not ended after ${endWorkMs / 1_000} s`;
  const facts = { detail, remedy: 'the server tries again', because: 'earlier_work' } as const;
  throw new ServiceError('tracker_unavailable', facts, { cause });
};

export const createInvokedActors = (): InvokedActors => {
  const running = new Map<TaskId, Set<StartedWork>>();

  const waitFor = async (taskId: TaskId, works: readonly StartedWork[]): Promise<void> => {
    const all = Promise.allSettled(works.map(({ work }) => work));
    if (works.length > 0) await withTimeout(all, endWorkMs, `the earlier work of ${taskId}`);
  };
  const stoppedWork = (taskId: TaskId): readonly StartedWork[] =>
    [...(running.get(taskId) ?? [])].filter(({ signal }) => signal.aborted);

  const remember = (taskId: TaskId, each: StartedWork): void => {
    const own = running.get(taskId) ?? new Set();
    running.set(taskId, own.add(each));
    const forget = (): void => {
      own.delete(each);
      if (own.size === 0 && running.get(taskId) === own) running.delete(taskId);
    };
    each.work.then(forget, forget);
  };

  const run = async <Output, Input extends { readonly taskId: TaskId }>(
    work: InvokedWork<Output, Input>,
    input: Input,
    signal: AbortSignal,
  ): Promise<Output> => {
    const earlier = stoppedWork(input.taskId);
    if (earlier.length > 0)
      await waitFor(input.taskId, earlier).catch((error) => tryAgainLater(input.taskId, error));
    signal.throwIfAborted();
    return work(input, signal);
  };

  return {
    actor: (work) =>
      fromPromise(({ input, signal }) => {
        const running = run(work, input, signal);
        remember(input.taskId, { signal, work: running });
        return running;
      }),
    whenEnded: (taskId) => waitFor(taskId, stoppedWork(taskId)),
    settle: (ms) => {
      const all = [...running.values()].flatMap((own) => [...own].map(({ work }) => work));
      return withTimeout(Promise.allSettled(all), ms, 'the work').catch(() => {});
    },
  };
};
