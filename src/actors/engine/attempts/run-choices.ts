import type { BackendAnswer } from '../../../machines/supervisor/supervisor-context.ts';
import {
  type Finding,
  type ProjectProblem,
  parseTaskId,
  type Role,
  type RunOptions,
  type TaskId,
} from '../../../machines/task.ts';
import { holderOf } from '../../../machines/tracked-task.ts';
import { entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Entry } from '../../store/port.ts';
import type { Tracker } from '../../tracker/port.ts';
import { landsAs } from '../merging/rework.ts';
import type { SupervisorEvents } from '../slots/supervision.ts';
import type { KeptTasks } from '../tasks/loaded-tasks.ts';
import type { TaskHost } from '../tasks/task-host.ts';
import { type Budgets, isFree } from './budgets.ts';
import {
  type BackendSelector,
  missingFor,
  refusedChoice,
  type SelectedBackend,
} from './select-assistant.ts';
import { limitsFor, type Settings } from './settings.ts';
import type { RunChoices } from './system-ports.ts';

/** The name of the limits of models of a provider. */
export const limitsOfProvider = (provider: string): string =>
  provider === 'openai' ? 'builtin' : `builtin:${provider}`;

/**
 * The name of the limits that hold up a run: each provider has its own. Those of OpenAI are called as
 * all were before there were several.
 */
const limitsOf = ({ backend, name }: SelectedBackend, { placeOf }: Settings): string => {
  return backend === 'builtin' ? limitsOfProvider(placeOf(name).provider) : backend;
};

export const createRunChoices = (
  settings: () => Settings,
  backends: Pick<BackendSelector, 'now'>,
  now: () => number,
): RunChoices => ({
  limits: (run, role) => ({
    ...limitsFor(settings(), run, role, now()),
    limitedBy: limitsOf(backends.now(run, role), settings()),
  }),
  backendOf: (run, role) => backends.now(run, role).backend,
  limitedBackendOf: (run, role) => {
    const chosen = backends.now(run, role);
    return isFree(chosen) ? null : limitsOf(chosen, settings());
  },
  modelOf: (run, role) => {
    const chosen = backends.now(run, role);
    const disclaimer = chosen.backend === 'builtin' ? (chosen.model?.disclaimer ?? null) : null;
    return { name: chosen.name, disclaimer };
  },
  landing: () => settings().landing,
  mergeMode: (input) => landsAs(input, settings().merge, settings().landing),
  notes: () => settings().notes,
});

/** Looks up what the guards of a run ask for. */
export const createRunLookUp =
  (
    { actor }: Pick<Tracker, 'actor'>,
    { refresh }: Pick<TaskHost, 'refresh'>,
    settings: () => Settings,
    backends: Pick<BackendSelector, 'afterLoginCheck'>,
    budgets: Pick<Budgets, 'parking'>,
    projectProblem: (taskId: TaskId) => Promise<ProjectProblem | null>,
  ) =>
  async (taskId: TaskId, run: RunOptions, role: Role): Promise<Finding> => {
    const task = await refresh(taskId);
    const chosen = await backends.afterLoginCheck(run, role);
    return {
      exists: task !== null,
      unmet: task?.unmet ?? [],
      holder: task === null ? null : holderOf(task, actor),
      ...missingFor(chosen, settings()),
      projectProblem: (await projectProblem(taskId)) ?? refusedChoice(chosen, settings()),
      usedBudget: await budgets.parking(run, role),
    };
  };

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
