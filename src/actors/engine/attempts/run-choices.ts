import type { Finding, ProjectProblem, Role, RunOptions, TaskId } from '../../../machines/task.ts';
import { holderOf } from '../../../machines/tracked-task.ts';
import type { Tracker } from '../../tracker/port.ts';
import { landsAs } from '../merging/rework.ts';
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
