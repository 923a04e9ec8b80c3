import { createActor, transition } from 'xstate';
import { z } from 'zod';
import type { AgentContext, StartConflict, WaitsAt } from '../../machines/agent-context.ts';
import { agentMachine } from '../../machines/agent-machine.ts';
import { attemptKey, type Parking, type Role, type TaskId } from '../../machines/task.ts';
import type { ObservedStatus } from '../../machines/task-context.ts';
import { type TaskSnapshot, taskMachine } from '../../machines/task-machine.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { ActorReads, EntryReads, RemovedHistory, SavedActor } from '../store/port.ts';
import { type AgentState, type TaskState, type TaskView, toView } from './task-view.ts';

/** Raised when a machine can no longer read older snapshots. */
export const machineVersion = 1;

const persistedSchema = z.looseObject({
  value: z.union([z.string(), z.record(z.string(), z.unknown())]),
  context: z.record(z.string(), z.unknown()),
});

const parseSnapshot = ({ id, version, snapshot }: SavedActor) => {
  if (version !== machineVersion)
    throw new Error(
      `the state of ${id} was written by version ${version} of the charts; this server reads ${machineVersion}`,
    );
  return persistedSchema.parse(JSON.parse(snapshot));
};

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

export const conflictsOf = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
  attempt: number,
): Promise<readonly StartConflict[]> => {
  const saved = await store.actor(attemptKey(taskId, attempt));
  return saved?.version === machineVersion ? (agentOf(saved)?.context.conflicts ?? []) : [];
};

export type SavedTaskReads = Pick<ActorReads, 'actor'> & Pick<EntryReads, 'removed'>;

/** The committed state of a task, without an actor. */
export const readSaved = async (store: SavedTaskReads, saved: SavedActor): Promise<SavedTask> => {
  const { value, context } = parseSnapshot(saved);
  const task: TaskState = taskMachine.resolveState({ value, context } as never);
  const key = attemptKey(saved.taskId as TaskId, task.context.attempt);
  const [agent, removed] = await Promise.all([store.actor(key), store.removed(saved.taskId)]);
  return { task, agent: agentOf(agent), changedAt: saved.changedAt, removed };
};

export const savedSnapshot = async (
  store: Pick<ActorReads, 'actor'> | null,
  taskId: TaskId,
): Promise<TaskSnapshot> => {
  const saved = (await store?.actor(taskId)) ?? null;
  if (saved === null) return createActor(taskMachine, { input: { taskId } }).getSnapshot();
  const { value, context } = parseSnapshot(saved);
  return taskMachine.resolveState({ value, context } as never);
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
  const agent = saved?.version === machineVersion ? agentOf(saved) : null;
  return agent !== null && (agent.tags.has('lent') || willAskAgain(agent));
};

/** The slot of a task in its committed state, or null. No other task may get it. */
export const savedSlot = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
): Promise<{ readonly role: Role; readonly lent: boolean } | null> => {
  const saved = await store.actor(taskId);
  const parsed = saved?.version === machineVersion && saved.pending ? parseSnapshot(saved) : null;
  if (parsed === null) return null;
  const task = taskMachine.resolveState(parsed as never);
  if (!task.hasTag('live')) return null;
  const agent = await store.actor(attemptKey(taskId, task.context.attempt));
  return {
    role: task.context.role ?? 'engineer',
    lent: isSlotLent(agent),
  };
};

/** The limit that a parked task waits for, or null. */
export const savedParking = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
): Promise<Parking | null> => {
  const saved = await store.actor(taskId);
  if (saved?.version !== machineVersion || !saved.pending) return null;
  const task = taskMachine.resolveState(parseSnapshot(saved) as never);
  return task.hasTag('parked') ? (task.context.parked ?? null) : null;
};

/** True when the committed attempt may continue, also when its state cannot be read. */
export const mayContinue = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
  attempt: number,
): Promise<boolean> => {
  const saved = await store.actor(taskId);
  if (saved?.pending !== true) return false;
  return saved.version !== machineVersion || parseSnapshot(saved).context['attempt'] === attempt;
};

const noRows = { task: null, agent: null, changedAt: 0 };

/** The view of a task that is not live. */
export const viewSaved = async (
  store: SavedTaskReads | null,
  tracked: TrackedTask,
): Promise<TaskView> => {
  const saved = (await store?.actor(tracked.id)) ?? null;
  const rows = store === null || saved === null ? noRows : await readSaved(store, saved);
  return toView({ tracked, ...rows });
};
