import { ServiceError } from '../../../machines/errors.ts';
import type { Budgets } from '../attempts/budgets.ts';
import type { BackendSelector } from '../attempts/select-assistant.ts';
import { limitsFor, type Settings } from '../attempts/settings.ts';
import type { ExecutePorts } from './execute-task.ts';

/** Checks and defaults of a run by the settings of now. */
export const createExecuteChecks = (
  settings: () => Settings,
  backends: Pick<BackendSelector, 'requireCost' | 'now'>,
  budgets: Pick<Budgets, 'areSet' | 'withRun' | 'used'>,
  now: () => number,
): Pick<
  ExecutePorts,
  | 'requirePrice'
  | 'requireNetwork'
  | 'optionsFor'
  | 'withRun'
  | 'usedBudget'
  | 'modelOf'
  | 'maxRetries'
> => ({
  requirePrice: async (run, role) => {
    const { maxCostUsd } = limitsFor(settings(), run, role, now());
    if (maxCostUsd !== null || budgets.areSet(run)) await backends.requireCost(run, role);
  },
  requireNetwork: ({ network }) => {
    if (network !== true || settings().allowTaskNetwork) return;
    const problem =
      'may not be enabled by a request; set sandbox.allow_task_network, or roles.<name>.network';
    throw new ServiceError('invalid_params', { fields: [{ path: 'options.network', problem }] });
  },
  optionsFor: (options, role) => {
    const given = [...settings().roles[role].verify, ...(options.verify ?? [])];
    const verify = [...new Set(given)];
    const { publishing, merge } = settings();
    if (options.publish === true && merge !== 'none') {
      const problem = 'its work would be merged here; set workspace.merge to none';
      throw new ServiceError('invalid_params', { fields: [{ path: 'options.publish', problem }] });
    }
    return {
      ...options,
      ...(verify.length === 0 ? {} : { verify }),
      ...(publishing.publish === 'when_complete' ? { publish: options.publish ?? true } : {}),
    };
  },
  withRun: budgets.withRun,
  usedBudget: budgets.used,
  modelOf: (run, role) => backends.now(run, role).name,
  maxRetries: () => settings().maxRetries,
});
