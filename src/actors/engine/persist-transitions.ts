import type { EventObject } from 'xstate';
import type { AgentSnapshot } from '../../machines/agent-machine.ts';
import { attemptKey, type TaskId } from '../../machines/task.ts';
import type { TaskSnapshot } from '../../machines/task-machine.ts';
import { agentChange, taskChange } from '../journal/entries.ts';
import type { Journal } from '../journal/journal.ts';
import type { RestingViews } from '../journal/snapshots.ts';
import { toView } from '../journal/task-view.ts';
import { previousViewOf } from '../journal/transition-frames.ts';
import type { LiveTask } from './live-tasks.ts';
import { agentOfAttempt } from './task-views.ts';

type Timed = EventObject & { readonly at?: number };

/** Commits transitions of tasks and agents with their frames, and sets their deadlines. */
export interface TransitionRecorder {
  task(next: TaskSnapshot, event: EventObject, previous: TaskSnapshot | null, persisted: () => unknown): void;
  agent(next: AgentSnapshot, event: EventObject, persisted: () => unknown): void;
}

export interface RecorderPorts {
  readonly journal: Journal;
  readonly resting: RestingViews;
  readonly live: (taskId: TaskId) => LiveTask | null;
  readonly setDeadline: (key: string, at: number | null) => void;
  readonly now: () => number;
}

export const createTransitionRecorder = (ports: RecorderPorts): TransitionRecorder => {
  const { journal, resting, setDeadline, now } = ports;
  const requireLive = (taskId: TaskId): LiveTask => {
    const task = ports.live(taskId);
    if (task === null) throw new Error(`task ${taskId} changed, but its actor is not registered`);
    return task;
  };
  return {
    task: (next, event: Timed, previous, persisted) => {
      if (previous === null) return;
      const { taskId, attempt, deadlineAt } = next.context;
      const task = requireLive(taskId);
      const at = event.at ?? now();
      resting.forget(taskId);
      const after = toView({ tracked: task.tracked, task: next, agent: agentOfAttempt(task, attempt), changedAt: at });
      const settledNow = next.hasTag('settled') && !previous.hasTag('settled');
      const change = taskChange({
        next,
        cause: event,
        at,
        before: task.shown,
        after,
        persisted: persisted(),
        settledNow,
      });
      // A quiet state has no effects, and no caller gets an answer before it is committed.
      const record = next.hasTag('quiet') ? journal.gather : journal.commit;
      record(task.requestId === null ? change : { ...change, request: { id: task.requestId, taskId } });
      task.shown = previousViewOf(after);
      task.requestId = null;
      setDeadline(taskId, next.hasTag('pending') ? deadlineAt : null);
    },
    agent: (next, event: Timed, persisted) => {
      const { taskId, attempt, deadlineAt } = next.context;
      const task = requireLive(taskId);
      const at = event.at ?? now();
      resting.forget(taskId);
      const snapshot = task.actor.getSnapshot();
      const after = toView({ tracked: task.tracked, task: snapshot, agent: next, changedAt: at });
      journal.commit(agentChange({ next, cause: event, at, before: task.shown, after, persisted: persisted() }));
      task.agent = next;
      task.running = next.status === 'active' ? next : null;
      task.shown = previousViewOf(after);
      setDeadline(attemptKey(taskId, attempt), next.status === 'active' ? deadlineAt : null);
    },
  };
};
