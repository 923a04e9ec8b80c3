import type { BackendAnswer } from '../../../machines/supervisor/supervisor-context.ts';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';
import { entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Entry } from '../../store/port.ts';
import type { SupervisorEvents } from '../slots/supervision.ts';
import type { KeptTasks } from '../tasks/loaded-tasks.ts';
import type { RunChoices } from './system-ports.ts';

interface LimitsPorts {
  readonly journal: Pick<Journal, 'onCommit' | 'gather'>;
  readonly supervisor: Pick<SupervisorEvents, 'send' | 'on' | 'snapshot'>;
  readonly live: Pick<KeptTasks, 'get' | 'all'>;
  readonly choices: Pick<RunChoices, 'limitedBackendOf'>;
  readonly now: () => number;
}

const freedText = 'the provider answers again: the task goes on before the limit was over';

/** Tells the supervisor which calls were answered, and parked tasks that their limit is over. */
export const endLimits = ({ journal, supervisor, live, choices, now }: LimitsPorts): void => {
  const answerIn = ({ taskId: text, at, data }: Entry): BackendAnswer | null => {
    const { ok, duration_ms } = JSON.parse(data) as { ok: boolean; duration_ms: number };
    const taskId = parseTaskId(text);
    const task = taskId === null ? null : live.get(taskId);
    if (!ok || taskId === null || task === null) return null;
    const { options, role } = task.actor.getSnapshot().context;
    const backend = role === null ? null : choices.limitedBackendOf(options, role);
    return backend === null ? null : { backend, taskId, startedAt: at - duration_ms };
  };
  journal.onCommit((entries) => {
    if (Object.keys(supervisor.snapshot().context.parkings).length === 0) return;
    for (const each of entries) {
      const answer = each.type === 'api_call_complete' ? answerIn(each) : null;
      // A listener must not throw, and the commit is still running.
      if (answer !== null)
        setImmediate(() => supervisor.send({ type: 'backend.answered', ...answer }));
    }
  });
  const free = (taskId: TaskId, backend: string): void => {
    const task = live.get(taskId);
    const event = { type: 'limit.ended', backend, at: now() } as const;
    if (task === null || !task.actor.getSnapshot().can(event)) return;
    const { attempt } = task.actor.getSnapshot().context;
    journal.gather({
      entries: [entry(taskId, attempt, 'log', now(), { level: 'info', message: freedText })],
    });
    task.actor.send(event);
  };
  supervisor.on('backend.freed', ({ backend }) => {
    for (const [taskId] of [...live.all()]) free(taskId, backend);
  });
};
