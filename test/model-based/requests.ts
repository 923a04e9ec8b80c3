import {
  type Expected,
  type ExpectedTask,
  end,
  followTracker,
  isLive,
  rest,
  unmetOf,
  waitingIn,
} from './expected.ts';

/**
 * What the service may answer to a request: `ok`, or the names of errors. The model is moved on
 * when it says ok.
 */
export interface Prediction {
  readonly answers: readonly string[];
  /** What the request leads to when it is answered so. */
  readonly lead: (answer: string) => void;
}

const only = (answer: string, lead: () => void = () => {}): Prediction => ({
  answers: [answer],
  lead: (given) => given === 'ok' && lead(),
});
const refused = (...answers: readonly string[]): Prediction => ({ answers, lead: () => {} });

/**
 * The way into the queue: a task that is refused there rests. One that is over stays as it is, and a
 * request that its dependencies or its holder refuse is not remembered.
 */
const enter = (model: Expected, task: ExpectedTask, maxTurns: number | null): Prediction => {
  const reason = (): readonly string[] => {
    if (unmetOf(model, task).length > 0) return ['dependencies_unmet'];
    if (task.tracked.heldByAmy) return ['tracker_conflict'];
    const full = waitingIn(model) >= model.queueLimit;
    // A task that comes back from its pause by itself may be in the queue already, or have left it.
    const unsure = model.tasks.some(({ stand }) => stand === 'pausing');
    if (unsure) return ['ok', 'queue_full'];
    return [full ? 'queue_full' : 'ok'];
  };
  return {
    answers: reason(),
    lead: (answer) => {
      const wasOver = task.stand !== 'resting' && !isLive(task);
      if (wasOver && answer !== 'ok' && answer !== 'queue_full') return;
      // A request that is refused is remembered: a retry without a role asks for the same again.
      task.hasRole = true;
      if (maxTurns !== null) task.maxTurns = maxTurns;
      if (answer !== 'ok') {
        if (!wasOver || task.tracked.word === 'open') rest(task);
        return;
      }
      model.orders += 1;
      task.stand = 'asked';
      task.order = model.orders;
      task.retriesLeft = model.maxRetries;
    },
  };
};

export const execute = (
  model: Expected,
  task: ExpectedTask,
  maxTurns: number | null,
): Prediction => {
  followTracker(task);
  if (isLive(task)) return refused('already_running');
  if (task.stand !== 'resting') return refused('event_not_allowed');
  return enter(model, task, maxTurns ?? Number.POSITIVE_INFINITY);
};

export const retry = (model: Expected, task: ExpectedTask, hasRole: boolean): Prediction => {
  followTracker(task);
  if (task.tracked.heldByAmy && !isLive(task)) return refused('tracker_conflict');
  if (task.stand !== 'failed' && task.stand !== 'cancelled') return refused('event_not_allowed');
  if (hasRole || task.hasRole) return enter(model, task, null);
  return only('ok', () => {
    task.tracked = { word: 'open', heldByAmy: false };
    rest(task);
  });
};

/** A review that asks for changes. */
export const review = (model: Expected, task: ExpectedTask): Prediction => {
  followTracker(task);
  if (isLive(task) || task.attempt === 0) return refused('event_not_allowed');
  const entry = enter(model, task, null);
  return {
    answers: entry.answers,
    lead: (answer) => {
      const opens = answer === 'ok' || answer === 'queue_full';
      if (opens && task.stand === 'complete') task.tracked = { word: 'open', heldByAmy: false };
      entry.lead(answer);
    },
  };
};

export const close = (model: Expected, task: ExpectedTask): Prediction => {
  followTracker(task);
  if (isLive(task)) return refused('event_not_allowed');
  if (task.stand === 'complete') return only('ok');
  const closedAlready = task.tracked.word === 'closed';
  if (!closedAlready && unmetOf(model, task).length > 0) return refused('dependencies_unmet');
  return only('ok', () => {
    task.tracked = { word: 'closed', heldByAmy: false };
    rest(task);
    end(task, 'complete');
  });
};

export const reopen = (task: ExpectedTask): Prediction => {
  followTracker(task);
  const isHeld = task.tracked.heldByAmy && !isLive(task);
  if (task.stand !== 'complete' && !isHeld) return refused('event_not_allowed');
  return only('ok', () => {
    task.tracked = { word: 'open', heldByAmy: false };
    rest(task);
  });
};

export const cancel = (task: ExpectedTask): Prediction => {
  followTracker(task);
  if (task.tracked.heldByAmy && !isLive(task)) return refused('tracker_conflict');
  if (task.stand === 'cancelled') return only('ok');
  if (task.stand === 'complete' || task.stand === 'failed') return refused('event_not_allowed');
  return only('ok', () => {
    if (!task.tracked.heldByAmy) task.tracked = { word: 'cancelled', heldByAmy: false };
    end(task, 'cancelled');
  });
};

export type Fit = 'right' | 'stale attempt' | 'wrong input';

export const respond = (task: ExpectedTask, fit: Fit): Prediction => {
  const isAtWork = task.stand === 'asked' && task.hasSlot;
  const mayHaveBegun = task.stand === 'pausing' ? ['stale_attempt'] : [];
  if (!isAtWork) return refused('event_not_allowed', ...mayHaveBegun);
  if (fit === 'stale attempt') return refused('stale_attempt');
  if (!task.asking) return refused('event_not_allowed');
  if (fit === 'wrong input') return refused('invalid_params');
  return only('ok', () => {
    // With no turn left it fails, but not before it has its slot again.
    task.asking = false;
  });
};
