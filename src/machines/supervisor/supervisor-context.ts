import type { DoneActorEvent, ErrorActorEvent } from 'xstate';
import type { AgentStart } from '../agent/agent-context.ts';
import type { AttemptKey, AttemptOutcome, Parking, Role, Stamped, TaskId } from '../task.ts';
import { firstWaiting, isWaiting, type SlotRequest, type WaitingQueue } from './waiting-queue.ts';

export interface SupervisorInput {
  readonly cap: number;
  readonly roleCaps: Readonly<Partial<Record<Role, number>>>;
  readonly queueLimit: number;
}

/** Attempts in a row that failed with the same provider error. */
interface Streak {
  readonly kind: string;
  readonly count: number;
  readonly message: string;
}

/** While a task waits for a person its slot is lent: another task may use it. */
interface HeldSlot {
  readonly taskId: TaskId;
  readonly role: Role;
  readonly lent: boolean;
  /** Set while it tests whether the limit of this backend is over. */
  readonly tries?: string;
}

export interface SupervisorContext extends SupervisorInput {
  readonly streak: Streak | null;
  /** Pauses of the queue since the last success. */
  readonly pauses: number;
  readonly waiting: WaitingQueue;
  readonly holding: readonly HeldSlot[];
  /** Tasks that want their lent slot back, oldest request first. */
  readonly returning: readonly TaskId[];
  /** The latest limit of each backend; it counts until its time. */
  readonly parkings: Readonly<Record<string, Parking>>;
  /** The time of the last limit of each backend that an answer ended early (epoch ms). */
  readonly endedEarly: Readonly<Record<string, number>>;
}

/** A call that a backend answered; `startedAt` in epoch ms. */
export interface BackendAnswer {
  readonly backend: string;
  readonly taskId: TaskId;
  readonly startedAt: number;
}

export type SupervisorEvent =
  | Stamped<{ readonly type: 'slot.requested'; readonly request: SlotRequest }>
  | {
      readonly type: 'slot.retaken';
      readonly taskId: TaskId;
      readonly role: Role;
      readonly lent?: boolean;
    }
  | { readonly type: 'slot.lent'; readonly taskId: TaskId }
  | { readonly type: 'slot.wanted'; readonly taskId: TaskId }
  | { readonly type: 'slot.returned'; readonly taskId: TaskId }
  /** A task of an earlier process is parked. */
  | { readonly type: 'backend.parked'; readonly parking: Parking }
  | ({ readonly type: 'backend.answered' } & BackendAnswer)
  /** It is asked by another key: its limit was that of the one before. */
  | { readonly type: 'backend.changed'; readonly backend: string }
  | { readonly type: 'agent.requested'; readonly key: AttemptKey; readonly input: AgentStart }
  | { readonly type: 'agent.dismissed'; readonly key: AttemptKey }
  | ({ readonly type: 'caps.changed' } & SupervisorInput)
  /** Sent when every waiting task of an earlier process is in the queue again. */
  | { readonly type: 'queue.opened' }
  | { readonly type: 'pause.over' }
  | { readonly type: 'drain' }
  | DoneActorEvent<AttemptOutcome>
  | ErrorActorEvent;

export type SupervisorFact =
  | { readonly type: 'slot.queued'; readonly taskId: TaskId }
  | { readonly type: 'slot.refused'; readonly taskId: TaskId; readonly limit: number }
  | { readonly type: 'slot.granted'; readonly taskId: TaskId }
  | { readonly type: 'slot.regained'; readonly taskId: TaskId }
  /** It left the queue: its backend is parked. */
  | { readonly type: 'slot.parked'; readonly taskId: TaskId; readonly parking: Parking }
  /** Its limit is over: its parked tasks may go on. */
  | { readonly type: 'backend.freed'; readonly backend: string }
  /** The receiver sends `pause.over` after `ms`. */
  | { readonly type: 'queue.paused'; readonly ms: number }
  | { readonly type: 'agent.ended'; readonly key: string; readonly outcome: AttemptOutcome }
  | { readonly type: 'agent.gone'; readonly key: string };

/** This many equal failures in a row mean that the provider is down. */
export const streakAtMost = 5;
const firstQueuePauseMs = 30_000;
const longestQueuePauseMs = 10 * 60_000;

export const pauseOf = ({ pauses }: Pick<SupervisorContext, 'pauses'>): number =>
  Math.min(firstQueuePauseMs * 2 ** Math.max(0, pauses - 1), longestQueuePauseMs);

/**
 * Counts temporary failures of the provider. A parked attempt changes nothing; any other end resets
 * the streak.
 */
export const streakAfter = (streak: Streak | null, outcome: AttemptOutcome): Streak | null => {
  if (outcome.status === 'parked') return streak;
  if (outcome.status === 'done') return null;
  const { code, retryable, facts, message } = outcome.failure;
  if (code !== 'model_failed' || !retryable) return null;
  const kind = String(facts['kind'] ?? '');
  return { kind, count: streak?.kind === kind ? streak.count + 1 : 1, message };
};

/** The limit that stops a request, or null. */
export const limitFor = (
  { parkings }: Pick<SupervisorContext, 'parkings'>,
  { backend, triesNow }: SlotRequest,
  at: number,
): Parking | null => {
  const parking = backend === null || triesNow ? undefined : parkings[backend];
  return parking !== undefined && parking.until > at ? parking : null;
};

/** The later one of two limits of a backend. */
export const withParking = (
  parkings: SupervisorContext['parkings'],
  parking: Parking,
): SupervisorContext['parkings'] =>
  (parkings[parking.backend]?.until ?? 0) >= parking.until
    ? parkings
    : { ...parkings, [parking.backend]: parking };

/** The limit that the try of this task tests, or undefined. */
export const testedLimit = (
  { holding }: Pick<SupervisorContext, 'holding'>,
  isTask: (taskId: TaskId) => boolean,
): string | undefined => holding.find(({ taskId }) => isTask(taskId))?.tries;

/**
 * A person's try that succeeds ends a limit. So does any call that began after it, unless the limit
 * has come back after such a call: then it may be one of another model.
 */
export const endsLimit = (
  context: SupervisorContext,
  { backend, taskId, startedAt }: BackendAnswer,
): boolean => {
  const limit = context.parkings[backend];
  if (limit === undefined) return false;
  if (testedLimit(context, (id) => id === taskId) === backend) return true;
  return startedAt > limit.since && (context.endedEarly[backend] ?? 0) <= limit.since;
};

export const withoutParking = (
  { parkings, endedEarly }: SupervisorContext,
  backend: string,
): Pick<SupervisorContext, 'parkings' | 'endedEarly'> => ({
  parkings: Object.fromEntries(Object.entries(parkings).filter(([name]) => name !== backend)),
  endedEarly: { ...endedEarly, [backend]: parkings[backend]?.until ?? 0 },
});

export const mayWait = (
  { waiting, queueLimit }: Pick<SupervisorContext, 'waiting' | 'queueLimit'>,
  { taskId, admitted }: Pick<SlotRequest, 'taskId' | 'admitted'>,
): boolean => admitted || waiting.length < queueLimit || isWaiting(waiting, taskId);

/**
 * Tasks with a slot that is not lent. May exceed the cap after the cap was lowered or after a
 * restart.
 */
export const atWork = ({ holding }: Pick<SupervisorContext, 'holding'>): readonly HeldSlot[] =>
  holding.filter(({ lent }) => !lent);

type SlotCaps = Pick<SupervisorContext, 'cap' | 'roleCaps' | 'holding'>;

interface RoleUse {
  readonly running: number;
  readonly cap: number;
}

/** Null for a role without a cap of its own. */
export const roleUse = (slots: Omit<SlotCaps, 'cap'>, role: Role): RoleUse | null => {
  const cap = slots.roleCaps[role];
  return cap === undefined
    ? null
    : { running: atWork(slots).filter((holder) => holder.role === role).length, cap };
};

/** A slot is free, also one of the role. */
const roomFor = (slots: SlotCaps): ((role: Role) => boolean) => {
  const isSlotFree = atWork(slots).length < slots.cap;
  return (role) => {
    const use = roleUse(slots, role);
    return isSlotFree && (use === null || use.running < use.cap);
  };
};

/** A free slot goes to the first whose role has room. */
export const nextWaiting = (context: SupervisorContext): SlotRequest | undefined =>
  firstWaiting(context.waiting, roomFor(context));

/** These come before the queue: their attempts have begun. */
export const nextReturning = (context: SupervisorContext): HeldSlot | undefined => {
  const hasRoom = roomFor(context);
  return context.returning
    .flatMap((taskId) => context.holding.filter((holder) => holder.taskId === taskId))
    .find(({ role }) => hasRoom(role));
};

export const withLent = (
  holding: readonly HeldSlot[],
  taskId: TaskId,
  lent: boolean,
): readonly HeldSlot[] =>
  holding.map((holder) => (holder.taskId === taskId ? { ...holder, lent } : holder));

type QueueLimit = Pick<SupervisorContext, 'waiting' | 'queueLimit'>;

/** The guards between a request and a slot. `explain` evaluates them for one request. */
export const slotGuards = {
  queueHasRoom: (
    { context }: { readonly context: QueueLimit },
    { request }: { readonly request: Pick<SlotRequest, 'taskId' | 'admitted'> },
  ): boolean => mayWait(context, request),
  /** For one of the waiting tasks: its role has room too. */
  slotIsFree: (
    { context }: { readonly context: SlotCaps },
    { roles }: { readonly roles: readonly Role[] },
  ): boolean => roles.some(roomFor(context)),
};
export type SlotGuard = keyof typeof slotGuards;
