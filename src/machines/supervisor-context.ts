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
}

export interface SupervisorInput {
  /** How many tasks may hold a slot at once. */
  readonly cap: number;
  readonly roleCaps: Readonly<Partial<Record<Role, number>>>;
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
  /** The time that was told with `queue.paused` has passed. */
  | { readonly type: 'pause.over' }
  | { readonly type: 'drain' }
  | DoneActorEvent<AttemptOutcome>
  | ErrorActorEvent;

/** What observers wait for: a task got its slot, nobody gets one for a while, an agent ended or is gone. */
export type SupervisorFact =
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

export const insert = (waiting: readonly Place[], place: Place): readonly Place[] => {
  const others = waiting.filter(({ taskId }) => taskId !== place.taskId);
  const index = others.findIndex((other) => before(place, other));
  return index < 0 ? [...others, place] : [...others.slice(0, index), place, ...others.slice(index)];
};

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
