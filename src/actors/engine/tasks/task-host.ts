import type { AnyActorRef, EventObject } from 'xstate';
import type { AgentSnapshot } from '../../../machines/agent/agent-machine.ts';
import { hasTime } from '../../../machines/agent/agent-selectors.ts';
import type { Acceptance, Cut } from '../../../machines/task/task-context.ts';
import type { TaskSnapshot } from '../../../machines/task/task-machine.ts';
import { attemptKey, type TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { staleCommit } from '../../journal/commit-answer.ts';
import type { PendingTransition } from '../../journal/durable-actor.ts';
import { agentChange, taskChange } from '../../journal/entries.ts';
import type { Journal } from '../../journal/journal.ts';
import { type TaskView, toView } from '../../journal/task-view.ts';
import { previousViewOf } from '../../journal/transition-frames.ts';
import type { Change, CommitAnswer, SavedActor, Store } from '../../store/port.ts';
import type { PreparedChange, Tracker } from '../../tracker/port.ts';
import type { ActorRoot } from '../slots/actor-system.ts';
import { createTimerWheel, type TimerWheel } from './deadlines.ts';
import {
  agentOfAttempt,
  createLoadedTasks,
  createTaskViews,
  type LoadedTask,
  type LoadedTasks,
  type TaskViews,
} from './loaded-tasks.ts';
import { patiently } from './patient-reads.ts';

type ToCommit = NonNullable<PreparedChange['toCommit']>;

/**
 * Changes of the tracker that wait for their transition, by the answer that causes it. They are no
 * part of that event, whose text goes to the journal and to the inspector.
 */
interface PreparedChanges {
  /** @returns the answer for the chart */
  keep(prepared: PreparedChange, cut?: Cut): Acceptance & Partial<Cut>;
  /** The change that a transition by this event must commit; null without one. */
  of(cause: EventObject & { readonly output?: unknown }): ToCommit | null;
}

const createPreparedChanges = (): PreparedChanges => {
  const waiting = new WeakMap<object, ToCommit>();
  return {
    keep: ({ refusal, toCommit }, cut) => {
      const answer = { refusal, ...cut };
      if (toCommit !== undefined) waiting.set(answer, toCommit);
      return answer;
    },
    of: ({ output }) =>
      typeof output === 'object' && output !== null ? (waiting.get(output) ?? null) : null,
  };
};

type Committing = CommitAnswer | Promise<CommitAnswer>;

type AgentTransition = Omit<PendingTransition<AgentSnapshot>, 'previous'>;

/** Commits transitions of tasks and agents with their frames, and sets their deadlines. */
interface TransitionRecorder {
  task(transition: PendingTransition<TaskSnapshot>, persisted: unknown): Committing;
  /** Also the first snapshot of an agent, before its actor exists. */
  agent(transition: AgentTransition, persisted: unknown): Committing;
}

interface RecorderPorts {
  readonly journal: Journal;
  readonly prepared: PreparedChanges;
  readonly live: Pick<LoadedTasks, 'get' | 'discard'>;
  readonly setDeadline: (key: string, at: number | null) => void;
  /** Called when a task stops waiting for a slot: it may have been granted one meanwhile. */
  readonly returnSlot: (taskId: TaskId) => void;
  readonly now: () => number;
}

const timeOf = (event: EventObject & { readonly at?: number }, now: () => number): number =>
  event.at ?? now();

/**
 * Runs the commits of a task and its agent one after another: the frames of each compare with the
 * view before it.
 */
const inTurn = (task: LoadedTask, commit: () => Committing): Committing => {
  const answer = task.committing === null ? commit() : task.committing.then(commit);
  if (!(answer instanceof Promise)) return answer;
  const ended = answer.then(
    () => {},
    () => {},
  );
  task.committing = ended;
  void ended.then(() => {
    if (task.committing === ended) task.committing = null;
  });
  return answer;
};

const onceOk = (answer: Committing, apply: () => void): Committing => {
  if (answer instanceof Promise) return answer.then((word) => onceOk(word, apply));
  if (answer === 'ok') apply();
  return answer;
};

/** A transition of a task as it is committed, and the task as people see it then. */
const taskTransition = (
  task: LoadedTask,
  { next, cause, previous, requestId }: PendingTransition<TaskSnapshot>,
  {
    persisted,
    at,
    toCommit,
  }: {
    readonly persisted: unknown;
    readonly at: number;
    readonly toCommit: ReturnType<PreparedChanges['of']>;
  },
): { readonly change: Change; readonly after: TaskView } => {
  const { taskId, attempt } = next.context;
  const after = toView({
    tracked: task.tracked,
    task: next,
    agent: agentOfAttempt(task, attempt),
    changedAt: at,
  });
  // The tracker still has the end of an attempt, after which a request was refused.
  const isShownAgain =
    previous.hasTag('refused') && cause.type === 'tracker.observed' && !next.hasTag('complete');
  const isSettledNow = next.hasTag('settled') && !previous.hasTag('settled');
  const settled = isSettledNow ? (isShownAgain ? 'again' : 'now') : null;
  const closedByHand = next.hasTag('complete') && previous.matches({ queued: 'closing' });
  const change: Change = {
    ...taskChange({
      next,
      cause,
      at,
      before: task.shown,
      after,
      persisted,
      settled,
      closedByHand,
    }),
    guard: { revision: task.revision, attempt: next.hasTag('live') ? attempt : 0 },
    ...(requestId === null ? {} : { request: { id: requestId, taskId } }),
    ...(toCommit === null ? {} : { tasks: [toCommit.edit] }),
  };
  return { change, after };
};

const waitsForSlot = (task: TaskSnapshot): boolean => task.hasTag('phase:waiting_for_slot');

const createTaskCommit =
  ({ journal, prepared, live, setDeadline, returnSlot, now }: RecorderPorts) =>
  (
    task: LoadedTask,
    transition: PendingTransition<TaskSnapshot>,
    persisted: unknown,
  ): Committing => {
    const { next, cause, previous } = transition;
    const { taskId, deadlineAt } = next.context;
    const at = timeOf(cause, now);
    const leavesQueue = waitsForSlot(previous) && !waitsForSlot(next) && !next.hasTag('live');
    const toCommit = prepared.of(cause);
    if (toCommit !== null) task.tracked = toCommit.tracked;
    const { change, after } = taskTransition(task, transition, { persisted, at, toCommit });
    const apply = (): void => {
      task.shown = previousViewOf(after);
      setDeadline(taskId, next.hasTag('pending') ? deadlineAt : null);
      if (leavesQueue) returnSlot(taskId);
    };
    // A quiet state has no effects, and no caller gets an answer before it is committed. A task that
    // is opened again is looked up next.
    const isLookedUp = toCommit !== null && !next.hasTag('live');
    if (isLookedUp || !next.hasTag('quiet')) {
      task.revision += 1;
      return onceOk(journal.commit(change), apply);
    }
    const gathered = journal.gather(change, () => live.discard(taskId, task, staleCommit()));
    if (gathered === 'added') task.revision += 1;
    apply();
    return 'ok';
  };

const createAgentCommit =
  ({ journal, live, setDeadline, now }: RecorderPorts) =>
  (
    task: LoadedTask,
    { next, cause, requestId }: AgentTransition,
    persisted: unknown,
  ): Committing => {
    const { taskId, attempt, deadlineAt } = next.context;
    const at = timeOf(cause, now);
    const snapshot = task.actor.getSnapshot();
    const after = toView({ tracked: task.tracked, task: snapshot, agent: next, changedAt: at });
    const change: Change = {
      ...agentChange({ next, cause, at, before: task.shown, after, persisted }),
      guard: { revision: task.agentRevision, attempt },
      ...(requestId === null ? {} : { request: { id: requestId, taskId } }),
    };
    const isActive = next.status === 'active';
    const apply = (): void => {
      task.shown = previousViewOf(after);
      task.agent = next;
      task.running = isActive ? next : null;
      setDeadline(attemptKey(taskId, attempt), isActive ? deadlineAt : null);
    };
    const giveUp = (error: unknown): void => live.discard(taskId, task, error);
    // What follows from it is committed with it: the end of the task, or the intent of what it does
    // next. What a person says is answered when it is saved.
    const isQuiet = next.hasTag('quiet') && cause.type.startsWith('xstate.done.');
    if ((isQuiet || !isActive) && requestId === null) {
      const gathered = journal.gather(change, () => giveUp(staleCommit()));
      if (gathered === 'added') task.agentRevision += 1;
      apply();
      return 'ok';
    }
    task.agentRevision += 1;
    const answer = onceOk(journal.commit(change), apply);
    // What the store cannot save is no fault of the attempt, which goes on from what is saved.
    if (answer instanceof Promise) answer.catch(giveUp);
    return answer;
  };

const createTransitionRecorder = (ports: RecorderPorts): TransitionRecorder => {
  const { live } = ports;
  const commitTask = createTaskCommit(ports);
  const commitAgent = createAgentCommit(ports);

  /** A task that was given up while its turn came commits nothing more. */
  const inTurnOf = (taskId: TaskId, commit: (task: LoadedTask) => Committing): Committing => {
    const task = live.get(taskId);
    if (task === null) throw new Error(`task ${taskId} changed, but its actor is not registered`);
    return inTurn(task, () => {
      if (live.get(taskId) !== task) throw task.fault ?? staleCommit();
      return commit(task);
    });
  };
  return {
    task: (transition, persisted) =>
      inTurnOf(transition.next.context.taskId, (task) => commitTask(task, transition, persisted)),
    agent: (transition, persisted) =>
      inTurnOf(transition.next.context.taskId, (task) => commitAgent(task, transition, persisted)),
  };
};

interface TaskHostPorts {
  readonly root: ActorRoot;
  readonly tracker: Tracker;
  readonly store: Store;
  readonly journal: Journal;
  readonly agentActor: (key: string) => AnyActorRef | undefined;
  readonly returnSlot: (taskId: TaskId) => void;
  readonly now: () => number;
}

/**
 * The state that all task and agent actors share: the live tasks, their views, deadlines and
 * commits.
 */
export interface TaskHost {
  readonly live: LoadedTasks;
  readonly views: TaskViews;
  readonly deadlines: TimerWheel;
  readonly prepared: PreparedChanges;
  readonly recorder: TransitionRecorder;
  /** Reads a task in the tracker, before a transition that depends on it. */
  refresh(taskId: TaskId): Promise<TrackedTask | null>;
  /** The saved agent of an attempt, for a new actor. */
  takeOverAgent(taskId: TaskId, attempt: number): Promise<SavedActor | null>;
}

/**
 * Deadlines of tasks and agents by key. The task ends an attempt at its limit only when the agent
 * did not.
 */
const createDeadlines = ({ now, agentActor }: TaskHostPorts, live: LoadedTasks): TimerWheel =>
  createTimerWheel(now, (key) => {
    const at = now();
    if (key.includes('#')) return agentActor(key)?.send({ type: 'DEADLINE', at });
    const task = live.get(key as TaskId);
    if (task === null) return;
    const agent = agentOfAttempt(task, task.actor.getSnapshot().context.attempt);
    task.actor.send({ type: 'DEADLINE', at, agentHasTime: agent !== null && hasTime(agent, at) });
  });

export const createTaskHost = (ports: TaskHostPorts): TaskHost => {
  const { root, tracker, store, journal, returnSlot, now } = ports;
  const live = createLoadedTasks(root.stop);
  const deadlines = createDeadlines(ports, live);
  const prepared = createPreparedChanges();
  return {
    live,
    views: createTaskViews({ store, now, live: live.get }),
    deadlines,
    prepared,
    recorder: createTransitionRecorder({
      journal,
      prepared,
      live,
      setDeadline: deadlines.set,
      returnSlot,
      now,
    }),
    refresh: async (taskId) => {
      const tracked = await tracker.find(taskId);
      const task = live.get(taskId);
      if (tracked !== null && task !== null) task.tracked = tracked;
      return tracked;
    },
    takeOverAgent: async (taskId, attempt) => {
      const saved = await patiently(() => store.takeOver(attemptKey(taskId, attempt)));
      const task = live.get(taskId);
      if (task !== null) task.agentRevision = saved?.revision ?? 0;
      return saved;
    },
  };
};
