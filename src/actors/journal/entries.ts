import type { EventObject } from 'xstate';
import type { AgentSnapshot } from '../../machines/agent/agent-machine.ts';
import type { TaskSnapshot } from '../../machines/task/task-machine.ts';
import { attemptKey } from '../../machines/task.ts';
import type { ActorState, Change } from '../store/port.ts';
import { charts } from './chart-versions.ts';
import type { TaskView } from './task-view.ts';
import {
  answerEntries,
  closeEntry,
  closingEntry,
  endingEntries,
  type PreviousView,
  questionEntries,
  requestEntries,
  retryEntries,
  tellEntries,
  transitionEntries,
  unreadEntries,
} from './transition-frames.ts';

interface SnapshotTransition<Snapshot> {
  readonly next: Snapshot;
  readonly cause: EventObject;
  /** Epoch ms. */
  readonly at: number;
  readonly before: PreviousView | null;
  readonly after: TaskView;
  readonly persisted: unknown;
}

const actorChange = (
  machine: 'task' | 'agent',
  id: string,
  pending: boolean,
  { next, cause, at, before, after, persisted }: SnapshotTransition<TaskSnapshot | AgentSnapshot>,
): Change => {
  const { taskId, attempt } = next.context;
  const { value, tags } = next;
  return {
    actor: {
      id,
      taskId,
      version: charts.newest,
      pending,
      changedAt: at,
      snapshot: JSON.stringify(persisted),
    },
    entries: transitionEntries({ machine, value, tags, cause, at, attempt, before, after }),
  };
};

/** The gates of a workflow read the folders of its tasks: those stay on its server. */
const isOfWorkflow = (label: string): boolean => label.startsWith('workflow:');

const slotWaitOf = (
  next: TaskSnapshot,
  { priority, labels }: TaskView,
): Pick<ActorState, 'waits'> => {
  const { role } = next.context;
  const isWaiting = next.hasTag('phase:waiting_for_slot');
  const waits = role !== null && isWaiting && !labels.some(isOfWorkflow);
  return waits ? { waits: { role, priority } } : {};
};

/** The end of an attempt adds its last frames. */
export const taskChange = (
  transition: SnapshotTransition<TaskSnapshot> & {
    /** `again`: it shows the end that it had before a request was refused. */
    readonly settled: 'now' | 'again' | null;
    readonly closedByHand: boolean;
  },
): Change => {
  const { next, after, at, settled, closedByHand } = transition;
  const changed = actorChange('task', next.context.taskId, next.hasTag('pending'), transition);
  const change = {
    ...changed,
    ...(changed.actor === undefined
      ? {}
      : { actor: { ...changed.actor, ...slotWaitOf(next, after) } }),
    entries: [
      ...tellEntries(after, transition.cause, at),
      ...changed.entries,
      ...requestEntries(after, transition.cause, at),
      ...(closedByHand ? [closeEntry(next, after, at)] : []),
      ...retryEntries(next, after, transition.before, at),
    ],
  };
  if (settled === null) return change;
  if (settled === 'again')
    return { ...change, entries: [...change.entries, closingEntry(after, at)] };
  const { taskId, attempt, kept } = next.context;
  const entries = [
    ...change.entries,
    ...unreadEntries(after, kept?.texts ?? [], at),
    ...endingEntries(next, after, at),
  ];
  return { ...change, entries, forgetSteps: { taskId, attempt } };
};

/** A new question adds a frame, and so does its answer, and what a person says to it. */
export const agentChange = (transition: SnapshotTransition<AgentSnapshot>): Change => {
  const { next, cause, before, after, at } = transition;
  const { taskId, attempt } = next.context;
  const change = actorChange(
    'agent',
    attemptKey(taskId, attempt),
    next.status === 'active',
    transition,
  );
  const { answer, calls } = next.context;
  const isUnanswered = cause.type === 'DEADLINE' && (before?.inputId ?? null) !== null;
  const fallback = isUnanswered && answer?.from === 'nobody' ? (answer.text ?? 'deny') : null;
  return {
    ...change,
    entries: [
      ...answerEntries(after, { cause, calls, fallback }, at),
      ...tellEntries(after, cause, at),
      ...change.entries,
      ...questionEntries(after, before, at),
    ],
  };
};
