import type { AgentStart } from '../../machines/agent-context.ts';
import { type Refusal, refusal } from '../../machines/errors.ts';
import type { SlotRequest } from '../../machines/supervisor-context.ts';
import { type AttemptKey, type AttemptOutcome, attemptKey, type Role, type TaskId } from '../../machines/task.ts';
import type { Verdict } from '../../machines/task-context.ts';
import { withTimeout } from '../process/with-timeout.ts';
import type { Supervision } from './supervision.ts';

/** The slots and agents of the supervisor, as promises: each one is given up, and rejects, when its signal aborts. */
export interface Attempts {
  /** Asks for a place in the queue; the slot may be granted at once. */
  requestSlot(request: SlotRequest, signal: AbortSignal): Promise<Verdict>;
  waitForSlot(request: SlotRequest, signal: AbortSignal): Promise<void>;
  /** Never resolves: the slot is held until the signal aborts, and further while what was committed says so. */
  holdSlot(taskId: TaskId, role: Role, signal: AbortSignal): Promise<void>;
  /** While a person is waited for, somebody else may have the slot. */
  lendSlot(taskId: TaskId): Promise<void>;
  regainSlot(taskId: TaskId, signal: AbortSignal): Promise<void>;
  /** When the signal aborts the agent is stopped, and it rejects when none of its tracked work is left. */
  run(input: AgentStart, signal: AbortSignal): Promise<AttemptOutcome>;
  /** Remembers work of an attempt that must have ended before the attempt counts as gone. */
  track<Result>(key: AttemptKey, work: Promise<Result>): Promise<Result>;
  /** Stops the agent and waits until none of its tracked work is left. @throws when it does not end in time. */
  quiesce(taskId: TaskId, attempt: number): Promise<void>;
  /** Waits until no tracked work of any attempt of a task is left. @throws when it does not end in time */
  whenSilent(taskId: TaskId): Promise<void>;
  /** Waits until no tracked work of any attempt is left, or for so long. */
  settle(ms: number): Promise<void>;
}

/** A full queue is asked again after so long. */
const queueRetrySeconds = 10;
const quiesceMs = 20_000;

/** `holdsSlot` tells from what was committed: an actor that broke comes back, and has its slot still. */
export const createAttempts = (
  supervisor: Pick<Supervision, 'send' | 'on'>,
  holdsSlot: (taskId: TaskId) => boolean,
): Attempts => {
  const asked = new Map<TaskId, (verdict: Verdict) => void>();
  const granted = new Map<TaskId, () => void>();
  const regained = new Map<TaskId, () => void>();
  const ended = new Map<string, (outcome: AttemptOutcome) => void>();
  const working = new Map<string, Set<Promise<unknown>>>();

  const answer = (taskId: TaskId, refused: Refusal | null): void => {
    asked.get(taskId)?.({ refusal: refused });
    asked.delete(taskId);
  };
  supervisor.on('slot.queued', ({ taskId }) => answer(taskId, null));
  supervisor.on('slot.refused', ({ taskId, limit }) =>
    answer(taskId, refusal('queue_full', { limit, retry_after_seconds: queueRetrySeconds })),
  );
  supervisor.on('slot.granted', ({ taskId }) => {
    granted.get(taskId)?.();
    granted.delete(taskId);
  });
  supervisor.on('slot.regained', ({ taskId }) => {
    regained.get(taskId)?.();
    regained.delete(taskId);
  });
  supervisor.on('agent.ended', ({ key, outcome }) => {
    ended.get(key)?.(outcome);
    ended.delete(key);
  });

  return {
    requestSlot: (request, signal) =>
      new Promise((resolve, reject) => {
        asked.set(request.taskId, resolve);
        signal.addEventListener('abort', () => {
          asked.delete(request.taskId);
          supervisor.send({ type: 'slot.returned', taskId: request.taskId });
          reject(signal.reason);
        });
        supervisor.send({ type: 'slot.requested', request });
      }),
    waitForSlot: (request, signal) =>
      new Promise((resolve, reject) => {
        granted.set(request.taskId, resolve);
        signal.addEventListener('abort', () => {
          granted.delete(request.taskId);
          supervisor.send({ type: 'slot.returned', taskId: request.taskId });
          reject(signal.reason);
        });
        supervisor.send({ type: 'slot.requested', request });
      }),
    holdSlot: (taskId, role, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          if (!holdsSlot(taskId)) supervisor.send({ type: 'slot.returned', taskId });
          reject(signal.reason);
        });
        supervisor.send({ type: 'slot.retaken', taskId, role });
      }),
    lendSlot: (taskId) => {
      supervisor.send({ type: 'slot.lent', taskId });
      return new Promise(() => {});
    },
    regainSlot: (taskId, signal) =>
      new Promise((resolve, reject) => {
        regained.set(taskId, resolve);
        signal.addEventListener('abort', () => {
          regained.delete(taskId);
          reject(signal.reason);
        });
        supervisor.send({ type: 'slot.wanted', taskId });
      }),
    run: (input, signal) =>
      new Promise((resolve, reject) => {
        const key = attemptKey(input.taskId, input.attempt);
        ended.set(key, resolve);
        signal.addEventListener('abort', () => {
          ended.delete(key);
          supervisor.send({ type: 'agent.dismissed', key });
          void Promise.allSettled([...(working.get(key) ?? [])]).then(() => reject(signal.reason));
        });
        supervisor.send({ type: 'agent.requested', key, input });
      }),
    track: (key, work) => {
      const all = working.get(key) ?? new Set();
      working.set(key, all.add(work));
      const forget = (): void => {
        all.delete(work);
        if (all.size === 0) working.delete(key);
      };
      work.then(forget, forget);
      return work;
    },
    quiesce: async (taskId, attempt) => {
      const key = attemptKey(taskId, attempt);
      supervisor.send({ type: 'agent.dismissed', key });
      await withTimeout(Promise.allSettled([...(working.get(key) ?? [])]), quiesceMs, `the work of attempt ${attempt}`);
    },
    whenSilent: async (taskId) => {
      const own = [...working].filter(([key]) => key.startsWith(`${taskId}#`)).flatMap(([, all]) => [...all]);
      if (own.length > 0)
        await withTimeout(Promise.allSettled(own), quiesceMs, `what an attempt of ${taskId} did before`);
    },
    settle: (ms) =>
      withTimeout(Promise.allSettled([...working.values()].flatMap((all) => [...all])), ms, 'the work').catch(() => {}),
  };
};
