import { createActor, transition } from 'xstate';
import { z } from 'zod';
import type { AgentContext, StartConflict, WaitsAt } from '../../machines/agent-context.ts';
import { agentMachine } from '../../machines/agent-machine.ts';
import { attemptKey, type Parking, type Role, type TaskId } from '../../machines/task.ts';
import type { ObservedStatus } from '../../machines/task-context.ts';
import { type TaskSnapshot, taskMachine } from '../../machines/task-machine.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { ActorReads, EntryReads, RemovedHistory, SavedActor } from '../store/port.ts';
import { canRead, UnreadableStateError } from './chart-versions.ts';
import { type AgentState, type TaskState, type TaskView, toView } from './task-view.ts';
import { shownIn } from './transition-frames.ts';

const persistedSchema = z.looseObject({
  value: z.union([z.string(), z.record(z.string(), z.unknown())]),
  context: z.record(z.string(), z.unknown()),
});

/** @throws UnreadableStateError */
const parseSnapshot = (saved: SavedActor) => {
  if (!canRead(saved)) throw new UnreadableStateError(saved);
  return persistedSchema.parse(JSON.parse(saved.snapshot));
};

/** @throws UnreadableStateError */
export const persistedSnapshot = (saved: SavedActor): never => parseSnapshot(saved) as never;

export interface SavedTask {
  readonly task: TaskState;
  readonly agent: AgentState | null;
  readonly changedAt: number;
  readonly removed: RemovedHistory | null;
}

const agentOf = (saved: SavedActor | null): AgentState | null => {
  if (saved === null) return null;
  const { value, context } = parseSnapshot(saved);
  return agentMachine.resolveState({ value, context } as never);
};

type SnapshotReads = Pick<ActorReads, 'actor'> & Pick<EntryReads, 'latest'>;

export const conflictsOf = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
  attempt: number,
): Promise<readonly StartConflict[]> => {
  const saved = await store.actor(attemptKey(taskId, attempt));
  return saved !== null && canRead(saved) ? (agentOf(saved)?.context.conflicts ?? []) : [];
};

export type SavedTaskReads = Pick<ActorReads, 'actor'> & Pick<EntryReads, 'removed' | 'latest'>;

/** @throws UnreadableStateError */
export const stateIn = (saved: SavedActor): TaskSnapshot =>
  taskMachine.resolveState(parseSnapshot(saved) as never);

/** The state of the agent of a task; null for an old one that cannot be read. */
const agentFor = (task: TaskSnapshot, agent: SavedActor | null): AgentState | null =>
  agent === null || canRead(agent) || task.hasTag('live') ? agentOf(agent) : null;

/** The committed states of a task and of its agent, without actors. @throws UnreadableStateError */
export const readStates = async (
  store: Pick<ActorReads, 'actor'>,
  saved: SavedActor,
): Promise<Pick<SavedTask, 'task' | 'agent'>> => {
  const task = stateIn(saved);
  const { attempt } = task.context;
  const agent =
    attempt === 0 ? null : await store.actor(attemptKey(saved.taskId as TaskId, attempt));
  return { task, agent: agentFor(task, agent) };
};

/** @throws UnreadableStateError */
export const readSaved = async (store: SavedTaskReads, saved: SavedActor): Promise<SavedTask> => {
  const [states, removed] = await Promise.all([
    readStates(store, saved),
    store.removed(saved.taskId),
  ]);
  return { ...states, changedAt: saved.changedAt, removed };
};

/** True when this server can go on from the state of a task and of its agent at work. */
export const isReadable = async (
  store: Pick<ActorReads, 'actor'>,
  saved: SavedActor,
): Promise<boolean> => {
  if (!canRead(saved)) return false;
  const task = stateIn(saved);
  if (!task.hasTag('live')) return true;
  const agent = await store.actor(attemptKey(saved.taskId as TaskId, task.context.attempt));
  return agent === null || canRead(agent);
};

const unsavedSnapshot = (taskId: TaskId): TaskSnapshot =>
  createActor(taskMachine, { input: { taskId } }).getSnapshot();

/**
 * A task at rest whose state this server cannot read: its next attempt has the next number, and the
 * same role.
 */
export const restingSnapshot = async (
  store: Pick<EntryReads, 'latest'>,
  taskId: TaskId,
): Promise<TaskSnapshot> => {
  const { value, context } = unsavedSnapshot(taskId);
  const latest = await store.latest(taskId, 'snapshot');
  const { attempt = 0, role = null } = latest === null ? {} : shownIn(latest.data);
  return taskMachine.resolveState({ value, context: { ...context, attempt, role } });
};

/** @throws UnreadableStateError for a pending task */
export const savedSnapshot = async (
  store: SnapshotReads | null,
  taskId: TaskId,
): Promise<TaskSnapshot> => {
  const saved = (await store?.actor(taskId)) ?? null;
  if (store === null || saved === null) return unsavedSnapshot(taskId);
  if (!saved.pending && !canRead(saved)) return restingSnapshot(store, taskId);
  return stateIn(saved);
};

const observedStatus = (tracked: TrackedTask): ObservedStatus => {
  const status = statusInTracker(tracked);
  if (status === 'queued') return 'open';
  return status === 'complete' || status === 'failed' || status === 'cancelled'
    ? status
    : 'elsewhere';
};

export const trackerObserved = (tracked: TrackedTask, at: number) =>
  ({ type: 'tracker.observed', status: observedStatus(tracked), at }) as const;

/** A task at rest follows its status in the tracker. */
export const asTracked = (
  snapshot: TaskSnapshot,
  tracked: TrackedTask,
  at: number,
): TaskSnapshot =>
  snapshot.hasTag('pending')
    ? snapshot
    : transition(taskMachine, snapshot, trackerObserved(tracked, at))[0];

const waitsAt = [
  'awaitingInput',
  'awaitingApproval',
  'awaitingDecision',
  'returning',
] as const satisfies readonly WaitsAt[];

/**
 * True for an agent that waited for a person in an earlier process and will again after
 * `preparing`.
 */
export const willAskAgain = (agent: AgentState): boolean => {
  const { resumeAt } = agent.context as Pick<AgentContext, 'resumeAt'>;
  return agent.tags.has('phase:preparing') && waitsAt.some((state) => state === resumeAt);
};

/** True while an agent's slot is lent, also when it was about to lend it in an earlier process. */
const isSlotLent = (saved: SavedActor | null): boolean => {
  const agent = saved !== null && canRead(saved) ? agentOf(saved) : null;
  return agent !== null && (agent.tags.has('lent') || willAskAgain(agent));
};

/** What a task holds in its committed state. */
export interface Holding {
  /** No other task may get it. */
  readonly slot: { readonly role: Role; readonly lent: boolean } | null;
  /** The limit that it waits for. */
  readonly parking: Parking | null;
}
const holdsNothing: Holding = { slot: null, parking: null };

export const holdingOf = async (
  store: Pick<ActorReads, 'actor'>,
  saved: SavedActor | null,
): Promise<Holding> => {
  if (saved?.pending !== true || saved.waits !== undefined || !canRead(saved)) return holdsNothing;
  const task = stateIn(saved);
  if (task.hasTag('parked')) return { slot: null, parking: task.context.parked ?? null };
  if (!task.hasTag('live')) return holdsNothing;
  const agent = await store.actor(attemptKey(saved.taskId as TaskId, task.context.attempt));
  return {
    slot: { role: task.context.role ?? 'engineer', lent: isSlotLent(agent) },
    parking: null,
  };
};

/** True when the committed attempt may continue, also when its state cannot be read. */
export const mayContinue = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
  attempt: number,
): Promise<boolean> => {
  const saved = await store.actor(taskId);
  if (saved?.pending !== true) return false;
  return !canRead(saved) || parseSnapshot(saved).context['attempt'] === attempt;
};

const noRows = { task: null, agent: null, changedAt: 0 };

/** The view of a task that is not live: its last one when its state cannot be read. */
export const viewFrom = async (
  store: SavedTaskReads,
  tracked: TrackedTask,
  saved: SavedActor | null,
): Promise<TaskView> => {
  if (saved === null) return toView({ tracked, ...noRows });
  if (await isReadable(store, saved))
    return toView({ tracked, ...(await readSaved(store, saved)) });
  const latest = await store.latest(tracked.id, 'snapshot');
  return latest === null ? toView({ tracked, ...noRows }) : shownIn(latest.data);
};

/** As `viewFrom`, of the actor as it is now. */
export const viewSaved = async (
  store: SavedTaskReads | null,
  tracked: TrackedTask,
): Promise<TaskView> =>
  store === null
    ? toView({ tracked, ...noRows })
    : viewFrom(store, tracked, await store.actor(tracked.id));
