import { refusal } from '../../../machines/errors.ts';
import type { SlotRequest } from '../../../machines/supervisor/waiting-queue.ts';
import type { Acceptance } from '../../../machines/task/task-context.ts';
import type { Parking, Role, TaskId } from '../../../machines/task.ts';
import type { SupervisorEvents } from './supervision.ts';

/** Callers that wait for an event, one for each key; a later caller replaces the earlier one. */
interface Waiters<Answer> {
  /** After an abort of the signal, `onAbort` decides when the promise rejects. */
  wait(key: string, signal: AbortSignal, onAbort: (reject: () => void) => void): Promise<Answer>;
  /** Answers the caller of a key, if there is one. */
  answer(key: string, answer: Answer): void;
}

export const createWaiters = <Answer>(): Waiters<Answer> => {
  const waiting = new Map<string, (answer: Answer) => void>();
  return {
    wait: (key, signal, onAbort) =>
      new Promise((resolve, reject) => {
        waiting.set(key, resolve);
        signal.addEventListener('abort', () => {
          waiting.delete(key);
          onAbort(() => reject(signal.reason));
        });
      }),
    answer: (key, answer) => {
      waiting.get(key)?.(answer);
      waiting.delete(key);
    },
  };
};

/**
 * The supervisor's slots as promises. When a signal aborts, its promise rejects and the slot is
 * given back.
 */
export interface Slots {
  /** Resolves when the request is in the queue or granted. Refusal: queue_full. */
  joinQueue(request: SlotRequest, signal: AbortSignal): Promise<Acceptance>;
  /** Resolves with null and a slot, or with the limit that parks the backend. */
  awaitGrant(request: SlotRequest, signal: AbortSignal): Promise<Parking | null>;
  /**
   * Never resolves. After the abort the slot stays held as long as the committed state holds it.
   */
  holdSlot(taskId: TaskId, role: Role, signal: AbortSignal): Promise<void>;
  /** Never resolves: the slot stays lent until `regainSlot`. */
  lendSlot(taskId: TaskId): Promise<void>;
  regainSlot(taskId: TaskId, signal: AbortSignal): Promise<void>;
}

/** Part of queue_full: the caller may ask again after this time. */
const queueRetrySeconds = 10;

/** `holdsSlot` is true for a failed actor, too: it is restored and still has its slot. */
export const createSlots = (
  supervisor: Pick<SupervisorEvents, 'send' | 'on'>,
  holdsSlot: (taskId: TaskId) => boolean,
  now: () => number,
): Slots => {
  const requests = createWaiters<Acceptance>();
  const grants = createWaiters<Parking | null>();
  const returns = createWaiters<void>();
  supervisor.on('slot.queued', ({ taskId }) => requests.answer(taskId, { refusal: null }));
  supervisor.on('slot.refused', ({ taskId, limit }) => {
    const refused = refusal('queue_full', { limit, retry_after_seconds: queueRetrySeconds });
    requests.answer(taskId, { refusal: refused });
  });
  supervisor.on('slot.granted', ({ taskId }) => grants.answer(taskId, null));
  supervisor.on('slot.parked', ({ taskId, parking }) => grants.answer(taskId, parking));
  supervisor.on('slot.regained', ({ taskId }) => returns.answer(taskId));

  const giveBack = (taskId: TaskId) => (reject: () => void) => {
    supervisor.send({ type: 'slot.returned', taskId });
    reject();
  };
  return {
    joinQueue: (request, signal) => {
      const verdict = requests.wait(request.taskId, signal, giveBack(request.taskId));
      supervisor.send({ type: 'slot.requested', request, at: now() });
      return verdict;
    },
    awaitGrant: (request, signal) => {
      const granted = grants.wait(request.taskId, signal, giveBack(request.taskId));
      supervisor.send({ type: 'slot.requested', request, at: now() });
      return granted;
    },
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
    regainSlot: (taskId, signal) => {
      const regained = returns.wait(taskId, signal, (reject) => reject());
      supervisor.send({ type: 'slot.wanted', taskId });
      return regained;
    },
  };
};
