import type { DoneActorEvent, ErrorActorEvent } from 'xstate';
import type { AgentStart } from './agent-context.ts';
import type { AttemptKey, AttemptOutcome, Role, TaskId } from './task.ts';

/** A task in the queue for a slot. */
export interface Place {
  readonly taskId: TaskId;
  readonly role: Role;
  /** 0 (first) to 4. */
  readonly priority: number;
  readonly submittedAt: number;
  /** It was in the queue before: a limit does not hold for it. */
  readonly admitted: boolean;
}

export interface SupervisorInput {
  /** How many tasks may hold a slot at once. */
  readonly cap: number;
  readonly roleCaps: Readonly<Partial<Record<Role, number>>>;
  /** How many tasks may wait for a slot. */
  readonly queueLimit: number;
}

/** Attempts that failed one after the other in the same way, which is not theirs. */
interface Streak {
  readonly kind: string;
  readonly count: number;
  /** What the last of them said. */
  readonly message: string;
}

/** A task that has a slot; while a person is waited for it is lent to whoever is next. */
export interface Holder {
  readonly taskId: TaskId;
  readonly role: Role;
  readonly lent: boolean;
}

export interface SupervisorContext extends SupervisorInput {
  readonly streak: Streak | null;
  /** How often the queue has been paused without a success in between. */
  readonly pauses: number;
  /** In the order in which they will get a slot: priority first, then first come. */
  readonly waiting: readonly Place[];
  readonly holding: readonly Holder[];
  /** Those who lent their slot and want it again, in the order in which they asked. */
  readonly returning: readonly TaskId[];
}

export type SupervisorEvent =
  | { readonly type: 'slot.requested'; readonly place: Place }
  | { readonly type: 'slot.retaken'; readonly taskId: TaskId; readonly role: Role; readonly lent?: boolean }
  | { readonly type: 'slot.lent'; readonly taskId: TaskId }
  | { readonly type: 'slot.wanted'; readonly taskId: TaskId }
  | { readonly type: 'slot.returned'; readonly taskId: TaskId }
  | { readonly type: 'agent.requested'; readonly key: AttemptKey; readonly input: AgentStart }
  | { readonly type: 'agent.dismissed'; readonly key: AttemptKey }
  | ({ readonly type: 'caps.changed' } & SupervisorInput)
  /** Every task that an earlier process left waiting is in the queue again. */
  | { readonly type: 'queue.opened' }
  /** The time that was told with `queue.paused` has passed. */
  | { readonly type: 'pause.over' }
  | { readonly type: 'drain' }
  | DoneActorEvent<AttemptOutcome>
  | ErrorActorEvent;

/** What observers wait for: a task has a place or a slot, nobody gets one for a while, an agent ended or is gone. */
export type SupervisorFact =
  | { readonly type: 'slot.queued'; readonly taskId: TaskId }
  /** The queue holds its limit. */
  | { readonly type: 'slot.refused'; readonly taskId: TaskId; readonly limit: number }
  | { readonly type: 'slot.granted'; readonly taskId: TaskId }
  /** Who lent its slot has it again. */
  | { readonly type: 'slot.regained'; readonly taskId: TaskId }
  /** To be answered with `pause.over` after so many ms. */
  | { readonly type: 'queue.paused'; readonly ms: number }
  | { readonly type: 'agent.ended'; readonly key: string; readonly outcome: AttemptOutcome }
  /** It ended or was dismissed: nothing will be asked of it any more. */
  | { readonly type: 'agent.gone'; readonly key: string };

/** So many attempts that fail alike say that the provider is down, not that the tasks are hard. */
export const streakAtMost = 5;
const firstPauseMs = 30_000;
const longestPauseMs = 10 * 60_000;

/** How long the queue stays paused (ms). */
export const pauseOf = ({ pauses }: Pick<SupervisorContext, 'pauses'>): number =>
  Math.min(firstPauseMs * 2 ** Math.max(0, pauses - 1), longestPauseMs);

/** A failure of the provider that may pass counts; every other end proves that it answers. */
export const streakAfter = (streak: Streak | null, outcome: AttemptOutcome): Streak | null => {
  if (outcome.status === 'done') return null;
  const { code, retryable, facts, message } = outcome.failure;
  if (code !== 'model_failed' || !retryable) return null;
  const kind = String(facts['kind'] ?? '');
  return { kind, count: streak?.kind === kind ? streak.count + 1 : 1, message };
};

const before = (one: Place, other: Place): boolean =>
  one.priority !== other.priority ? one.priority < other.priority : one.submittedAt < other.submittedAt;

/** Who asks again keeps the place. */
export const insert = (waiting: readonly Place[], place: Place): readonly Place[] => {
  const earlier = waiting.find(({ taskId }) => taskId === place.taskId);
  if (earlier?.priority === place.priority && earlier.submittedAt === place.submittedAt) return waiting;
  const others = waiting.filter(({ taskId }) => taskId !== place.taskId);
  const index = others.findIndex((other) => before(place, other));
  return index < 0 ? [...others, place] : [...others.slice(0, index), place, ...others.slice(index)];
};

/** Whether a task that asks for a slot may wait for it. */
export const mayWait = ({ waiting, queueLimit }: SupervisorContext, { taskId, admitted }: Place): boolean =>
  admitted || waiting.length < queueLimit || waiting.some((place) => place.taskId === taskId);

/** Who holds a slot and has not lent it: no more than the cap at any instant. */
export const atWork = ({ holding }: Pick<SupervisorContext, 'holding'>): readonly Holder[] =>
  holding.filter(({ lent }) => !lent);

const roomFor = (context: SupervisorContext, role: Role): boolean =>
  atWork(context).filter((holder) => holder.role === role).length <
  (context.roleCaps[role] ?? Number.POSITIVE_INFINITY);

/** The first of the queue whose role has room, when a slot is free. */
export const next = (context: SupervisorContext): Place | undefined =>
  atWork(context).length < context.cap ? context.waiting.find(({ role }) => roomFor(context, role)) : undefined;

/** The first of those who want their slot again; they come before the queue, for they have begun. */
export const nextBack = (context: SupervisorContext): Holder | undefined =>
  atWork(context).length < context.cap
    ? context.returning
        .flatMap((taskId) => context.holding.filter((holder) => holder.taskId === taskId))
        .find(({ role }) => roomFor(context, role))
    : undefined;

export const withLent = (holding: readonly Holder[], taskId: TaskId, lent: boolean): readonly Holder[] =>
  holding.map((holder) => (holder.taskId === taskId ? { ...holder, lent } : holder));
