/**
 * What the service must be like, as a small model of its own: one record for each task, and nothing
 * of its machines.
 */

/** Where the service has a task: at rest, over, asked to run, or between two attempts. */
export type Stand = 'resting' | 'asked' | 'pausing' | 'complete' | 'failed' | 'cancelled';

export interface ExpectedTask {
  readonly id: string;
  readonly priority: number;
  stand: Stand;
  /** As the tracker has it; who holds it there when that is somebody else. */
  tracked: { word: 'open' | 'closed' | 'failed' | 'cancelled'; heldByAmy: boolean };
  attempt: number;
  /** Of a task that is asked to run: whether it has a slot, and whether it waits for a person. */
  hasSlot: boolean;
  asking: boolean;
  /** It was answered, and waits for its slot, which it had lent. */
  returning: boolean;
  /** How often the model was called in this attempt. */
  turns: number;
  maxTurns: number;
  retriesLeft: number;
  hasRole: boolean;
  /** Its turn in the queue: who was asked to run earlier comes first. */
  order: number;
  readonly dependencies: Set<string>;
  /** The ends that its stream must tell of, one for each run. */
  readonly ends: string[];
}

export interface Expected {
  readonly tasks: ExpectedTask[];
  readonly cap: number;
  readonly queueLimit: number;
  readonly maxRetries: number;
  orders: number;
  /** Failures of the provider one after the other: many of them would pause the queue. */
  streak: number;
}

export const createExpected = (cap: number, queueLimit: number, maxRetries: number): Expected => ({
  tasks: [],
  cap,
  queueLimit,
  maxRetries,
  orders: 0,
  streak: 0,
});

export const newTask = (
  id: string,
  priority: number,
  dependencies: readonly string[],
): ExpectedTask => ({
  id,
  priority,
  stand: 'resting',
  tracked: { word: 'open', heldByAmy: false },
  attempt: 0,
  hasSlot: false,
  asking: false,
  returning: false,
  turns: 0,
  maxTurns: Number.POSITIVE_INFINITY,
  retriesLeft: 0,
  hasRole: false,
  order: 0,
  dependencies: new Set(dependencies),
  ends: [],
});

export const isLive = ({ stand }: ExpectedTask): boolean =>
  stand === 'asked' || stand === 'pausing';
const isOver = ({ stand }: ExpectedTask): boolean =>
  ['complete', 'failed', 'cancelled'].includes(stand);

export const unmetOf = ({ tasks }: Expected, task: ExpectedTask): readonly string[] =>
  tasks
    .filter(({ id, tracked }) => task.dependencies.has(id) && tracked.word !== 'closed')
    .map(({ id }) => id);

/** Whether a task that runs, or is asked to, depends on this one. */
export const isNeeded = ({ tasks }: Expected, { id }: ExpectedTask): boolean =>
  tasks.some((other) => isLive(other) && other.dependencies.has(id));

const reaches = (model: Expected, from: string, to: string): boolean =>
  from === to ||
  [...(model.tasks.find(({ id }) => id === from)?.dependencies ?? [])].some((next) =>
    reaches(model, next, to),
  );

/** Whether it would close a cycle that the first depends on the second. */
export const closesCycle = (
  model: Expected,
  dependent: ExpectedTask,
  prerequisite: ExpectedTask,
): boolean => reaches(model, prerequisite.id, dependent.id);

const byWord = {
  open: 'resting',
  closed: 'complete',
  failed: 'failed',
  cancelled: 'cancelled',
} as const;
const endNames = { complete: 'completed', failed: 'failed', cancelled: 'cancelled' } as const;

/** A task comes to an end; each end is told once. */
export const end = (task: ExpectedTask, stand: keyof typeof endNames): void => {
  if (!isOver(task)) task.ends.push(endNames[stand]);
  task.stand = stand;
  task.hasSlot = false;
  task.asking = false;
  task.returning = false;
};

export const rest = (task: ExpectedTask): void => {
  task.stand = 'resting';
  task.hasSlot = false;
  task.asking = false;
  task.returning = false;
};

/**
 * What somebody did in the tracker to a task that nobody of ours works on counts when it is asked
 * for next.
 */
export const followTracker = (task: ExpectedTask): void => {
  if (isLive(task) || task.tracked.heldByAmy) return;
  const stand = byWord[task.tracked.word];
  if (stand === 'resting') rest(task);
  else end(task, stand);
};

/** The status that people see. */
export const statusOf = (task: ExpectedTask): string => {
  if (task.stand === 'pausing') return 'queued';
  if (task.stand === 'asked') return task.hasSlot ? 'started' : 'queued';
  if (task.tracked.heldByAmy) return 'started';
  return { open: 'queued', closed: 'complete', failed: 'failed', cancelled: 'cancelled' }[
    task.tracked.word
  ];
};

const accepted: Readonly<Record<Stand, readonly string[]>> = {
  resting: ['run', 'review', 'close', 'cancel'],
  asked: ['cancel'],
  pausing: ['cancel'],
  complete: ['review', 'reopen'],
  failed: ['retry', 'review', 'close'],
  cancelled: ['retry', 'review', 'close', 'cancel'],
};

/** How many tasks are in the queue for a slot. */
export const waitingIn = ({ tasks }: Expected): number =>
  tasks.filter(({ stand, hasSlot }) => stand === 'asked' && !hasSlot).length;

/** The commands that `explain` must name. */
export const allowedIn = (model: Expected, task: ExpectedTask): readonly string[] => {
  const isBlocked = unmetOf(model, task).length > 0;
  const cannotRun = isBlocked || task.tracked.heldByAmy || waitingIn(model) >= model.queueLimit;
  const isHeldBack = (name: string): boolean =>
    name === 'close'
      ? isBlocked
      : name === 'review'
        ? task.attempt === 0
        : ['run', 'retry'].includes(name) && cannotRun;
  // Who has it is asked first, or it is taken from him.
  if (task.stand === 'resting' && task.tracked.heldByAmy)
    return ['close', 'reopen'].filter((name) => !isHeldBack(name));
  return [
    ...accepted[task.stand].filter((name) => !isHeldBack(name)),
    ...(task.asking ? ['respond'] : []),
  ];
};
