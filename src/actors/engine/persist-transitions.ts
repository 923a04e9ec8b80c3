import type { EventObject } from 'xstate';
import type { AgentSnapshot } from '../../machines/agent-machine.ts';
import { attemptKey, type TaskId } from '../../machines/task.ts';
import type { TaskSnapshot } from '../../machines/task-machine.ts';
import type { CommitAnswer } from '../journal/commit-answer.ts';
import type { PendingTransition } from '../journal/durable-actor.ts';
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
  task(transition: PendingTransition<TaskSnapshot>, persisted: unknown): CommitAnswer;
  /** Also the first snapshot of an agent, before its actor exists. */
  agent(next: AgentSnapshot, cause: EventObject, persisted: unknown): CommitAnswer;
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
    task: ({ next, cause, previous, requestId }, persisted) => {
      const { taskId, attempt, deadlineAt } = next.context;
      const task = requireLive(taskId);
      const at = (cause as Timed).at ?? now();
      resting.forget(taskId);
      const after = toView({ tracked: task.tracked, task: next, agent: agentOfAttempt(task, attempt), changedAt: at });
      const settledNow = next.hasTag('settled') && !previous.hasTag('settled');
      const change = taskChange({
        next,
        cause,
        at,
        before: task.shown,
        after,
        persisted,
        settledNow,
      });
      // A quiet state has no effects, and no caller gets an answer before it is committed.
      const record = next.hasTag('quiet') ? journal.gather : journal.commit;
      record(requestId === null ? change : { ...change, request: { id: requestId, taskId } });
      task.shown = previousViewOf(after);
      setDeadline(taskId, next.hasTag('pending') ? deadlineAt : null);
      return 'ok';
    },
    agent: (next, cause, persisted) => {
      const { taskId, attempt, deadlineAt } = next.context;
      const task = requireLive(taskId);
      const at = (cause as Timed).at ?? now();
      resting.forget(taskId);
      const snapshot = task.actor.getSnapshot();
      const after = toView({ tracked: task.tracked, task: snapshot, agent: next, changedAt: at });
      journal.commit(agentChange({ next, cause, at, before: task.shown, after, persisted }));
      task.agent = next;
      task.running = next.status === 'active' ? next : null;
      task.shown = previousViewOf(after);
      setDeadline(attemptKey(taskId, attempt), next.status === 'active' ? deadlineAt : null);
      return 'ok';
    },
  };
};
