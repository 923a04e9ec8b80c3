import { type AnyStateMachine, createActor, transition } from 'xstate';
import { z } from 'zod';
import type { AgentContext, StartConflict, WaitsAt } from '../../machines/agent/agent-context.ts';
import { agentMachine } from '../../machines/agent/agent-machine.ts';
import type { ObservedStatus } from '../../machines/task/task-context.ts';
import { type TaskSnapshot, taskMachine } from '../../machines/task/task-machine.ts';
import { attemptKey, type Parking, type Role, type TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { ActorReads, EntryReads, RemovedHistory, SavedActor } from '../store/port.ts';
import { canRead, UnreadableStateError } from './chart-versions.ts';
import { type AgentState, type TaskState, type TaskView, toView } from './task-view.ts';
import { shownIn } from './transition-frames.ts';

const persistedSchema = z.looseObject({
  value: z.union([z.string(), z.record(z.string(), z.unknown())]),
  context: z.record(z.string(), z.unknown()),
  children: z
    .record(z.string(), z.looseObject({ snapshot: z.record(z.string(), z.unknown()) }))
    .default({}),
});

type Persisted = z.infer<typeof persistedSchema>;

/**
 * Hands a saved state to `make`. One that is broken is the fault of its task alone, whatever is wrong
 * with it. @throws UnreadableStateError only
 */
export const readSnapshot = <Result>(
  saved: SavedActor,
  make: (persisted: Persisted) => Result,
): Result => {
  if (!canRead(saved)) throw new UnreadableStateError(saved);
  try {
    return make(persistedSchema.parse(JSON.parse(saved.snapshot)));
  } catch (error) {
    throw new UnreadableStateError(saved, error);
  }
};

/** Reads each saved state, and leaves out those that this server cannot read. */
export const readEach = <Result>(
  rows: readonly SavedActor[],
  read: (saved: SavedActor) => Result,
): readonly Result[] =>
  rows.flatMap((saved) => {
    try {
      return [readSnapshot(saved, () => read(saved))];
    } catch {
      return [];
    }
  });

/** @throws UnreadableStateError */
export const persistedSnapshot = (saved: SavedActor): never =>
  readSnapshot(saved, (persisted) => persisted) as never;

/**
 * The saved state, to start an actor from; the actors that it invokes get the input of this version's
 * charts: another version may have saved one that lacks what they need now. @throws UnreadableStateError
 */
export const restoredSnapshot = (logic: AnyStateMachine, saved: SavedActor): never =>
  readSnapshot(saved, ({ value, context, children, ...rest }) => {
    const invoked = logic
      .resolveState({ value, context } as never)
      ._nodes.flatMap(({ invoke }) => invoke);
    const inputOf = (id: string, old: unknown): unknown => {
      const input = invoked.find((each) => each.id === id)?.input;
      return typeof input === 'function' ? input({ context } as never) : old;
    };
    const refreshed = Object.entries(children).map(([id, { snapshot, ...child }]) => {
      const input = inputOf(id, snapshot['input']);
      return [id, { ...child, snapshot: { ...snapshot, input } }];
    });
    return { ...rest, value, context, children: Object.fromEntries(refreshed) } as never;
  });

export interface SavedTask {
  readonly task: TaskState;
  readonly agent: AgentState | null;
  readonly changedAt: number;
  readonly removed: RemovedHistory | null;
}

/** @throws UnreadableStateError */
const agentIn = (saved: SavedActor): AgentState =>
  readSnapshot(saved, ({ value, context }) =>
    agentMachine.resolveState({ value, context } as never),
  );

/** Null for one that is not there, or cannot be read. */
const agentOf = (saved: SavedActor | null): AgentState | null =>
  saved === null ? null : (readEach([saved], agentIn)[0] ?? null);

export type SnapshotReads = Pick<ActorReads, 'actor'> & Pick<EntryReads, 'latest'>;

export const conflictsOf = async (
  store: Pick<ActorReads, 'actor'>,
  taskId: TaskId,
  attempt: number,
): Promise<readonly StartConflict[]> => {
  const saved = await store.actor(attemptKey(taskId, attempt));
  return agentOf(saved)?.context.conflicts ?? [];
};

export type SavedTaskReads = Pick<ActorReads, 'actor'> & Pick<EntryReads, 'removed' | 'latest'>;

/** @throws UnreadableStateError */
export const stateIn = (saved: SavedActor): TaskSnapshot =>
  readSnapshot(saved, (persisted) => taskMachine.resolveState(persisted as never));

/** True when this server can go on from the state of a task, whatever that of its agent is. */
export const isTaskReadable = (saved: SavedActor): boolean => readEach([saved], stateIn).length > 0;

/** The state of the agent of a task; null for an old one that cannot be read. */
const agentFor = (task: TaskSnapshot, agent: SavedActor | null): AgentState | null =>
  agent !== null && task.hasTag('live') ? agentIn(agent) : agentOf(agent);

/**
 * The committed states of a task and of its agent, without actors. With `tracked`, also whether they can
 * be shown. @throws UnreadableStateError
 */
export const readStates = async (
  store: Pick<ActorReads, 'actor'>,
  saved: SavedActor,
  tracked?: TrackedTask,
): Promise<Pick<SavedTask, 'task' | 'agent'>> => {
  const task = stateIn(saved);
  const { attempt } = task.context;
  const row = attempt === 0 ? null : await store.actor(attemptKey(saved.taskId as TaskId, attempt));
  const states = { task, agent: agentFor(task, row) };
  if (tracked !== undefined)
    readSnapshot(saved, () => toView({ tracked, ...states, changedAt: saved.changedAt }));
  return states;
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
  tracked: TrackedTask,
): Promise<boolean> => {
  try {
    await readStates(store, saved, tracked);
    return true;
  } catch (error) {
    if (error instanceof UnreadableStateError) return false;
    throw error;
  }
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
  if (!saved.pending && !isTaskReadable(saved)) return restingSnapshot(store, taskId);
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
  const agent = agentOf(saved);
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
  if (saved?.pending !== true || saved.waits !== undefined) return holdsNothing;
  const [task] = readEach([saved], stateIn);
  if (task === undefined) return holdsNothing;
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
  const [task] = readEach([saved], stateIn);
  return task === undefined || task.context.attempt === attempt;
};

const noRows = { task: null, agent: null, changedAt: 0 };

/** The view of a task that is not live: its last one when its state cannot be read. */
export const viewFrom = async (
  store: SavedTaskReads,
  tracked: TrackedTask,
  saved: SavedActor | null,
): Promise<TaskView> => {
  if (saved === null) return toView({ tracked, ...noRows });
  try {
    const states = await readSaved(store, saved);
    return readSnapshot(saved, () => toView({ tracked, ...states }));
  } catch (error) {
    if (!(error instanceof UnreadableStateError)) throw error;
  }
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
