import type { AnyActorRef } from 'xstate';
import { hasTime } from '../../machines/agent-selectors.ts';
import { attemptKey, type TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { Journal } from '../journal/journal.ts';
import type { SavedActor, Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import type { ActorRoot } from './actor-system.ts';
import { createTimerWheel, type TimerWheel } from './deadlines.ts';
import { createLoadedTasks, type LoadedTasks } from './loaded-tasks.ts';
import { patiently } from './patient-reads.ts';
import { createTransitionRecorder, type TransitionRecorder } from './persist-transitions.ts';
import { createPreparedChanges, type PreparedChanges } from './prepared-changes.ts';
import { agentOfAttempt, createTaskViews, type TaskViews } from './task-views.ts';

export interface TaskHostPorts {
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
