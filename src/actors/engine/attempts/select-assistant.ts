import type { AssistantName, Backend } from '../../../machines/agent/agent-context.ts';
import { ServiceError } from '../../../machines/errors.ts';
import type { Finding, ProjectProblem, Role, RunOptions } from '../../../machines/task.ts';
import type { Assistants } from '../../assistants/assistants.ts';
import type { Model } from '../../model/port.ts';
import type { Price } from '../../model/price.ts';
import { priceForAssistant, priceOf } from '../../model/price-table.ts';
import { modelNameFor, type Settings } from './settings.ts';

export type SelectedBackend =
  | {
      readonly backend: 'builtin';
      /** Null without a credential. */
      readonly model: Model | null;
      readonly name: string;
    }
  | {
      readonly backend: AssistantName;
      /** Null: the assistant's own choice. */
      readonly model: string | null;
      readonly name: string;
      /** Why it cannot be used, or null. */
      readonly problem: string | null;
    };

interface SelectionInput {
  readonly settings: Settings;
  readonly selectModel: (requested: string) => Model | null;
  readonly assistants: Assistants;
}

const builtinBackend = ({ selectModel }: SelectionInput, requested: string): SelectedBackend => {
  const model = selectModel(requested);
  return { backend: 'builtin', model, name: model?.disclaimer == null ? requested : model.name };
};

const assistantBackend = (
  { settings, assistants }: SelectionInput,
  name: AssistantName,
  run: RunOptions,
  role: Role,
): SelectedBackend => {
  const model = run.model ?? settings.roles[role].model;
  const problem = assistants.problem(name);
  const label = assistants.of(name)?.label ?? name;
  return { backend: name, model, name: model === null ? label : `${label} with ${model}`, problem };
};

/** Our own loop runs the scripted model. */
const requestedBackend = (
  { settings }: SelectionInput,
  run: RunOptions,
  role: Role,
): Backend | 'auto' => {
  const { backend, model } = settings.roles[role];
  const choice = backend ?? settings.backend;
  return (run.model ?? model) === 'scripted' || choice === 'scripted' ? 'builtin' : choice;
};

/**
 * The backend of a run: the one that the role or the configuration names; else our
 * loop if there is a key; else an assistant that is logged in. Assistants cannot ask for approval,
 * so a role with approvals never gets one by default.
 */
export const selectBackend = (
  input: SelectionInput,
  run: RunOptions,
  role: Role,
): SelectedBackend => {
  const { settings, assistants } = input;
  const scripted = settings.roles[role].backend === 'scripted';
  const requested = scripted ? 'scripted' : modelNameFor(settings, run, role);
  const choice = requestedBackend(input, run, role);
  if (choice !== 'auto' && choice !== 'builtin') return assistantBackend(input, choice, run, role);
  const ours = builtinBackend(input, requested);
  if (choice === 'builtin' || (ours.backend === 'builtin' && ours.model !== null)) return ours;
  const other = settings.roles[role].approvals.length > 0 ? null : assistants.loggedIn();
  return other === null ? ours : assistantBackend(input, other, run, role);
};

type MissingCredential = Pick<
  Finding,
  'missingCredential' | 'assistantProblem' | 'credentialRemedy'
>;

export const missingFor = (
  chosen: SelectedBackend,
  { placeOf }: Pick<Settings, 'placeOf'>,
): MissingCredential => {
  const {
    missing: missingCredential,
    remedy: credentialRemedy,
    keysProblem,
  } = placeOf(chosen.name);
  const problem = keysProblem === null ? {} : { assistantProblem: keysProblem };
  const missing = { missingCredential, credentialRemedy, ...problem };
  if (chosen.backend === 'builtin')
    return chosen.model === null ? missing : { missingCredential: null };
  return chosen.problem === null
    ? { missingCredential: null }
    : { ...missing, assistantProblem: chosen.problem };
};

/** Why nobody may be asked as it was chosen; null: it may. The fake model is nobody's. */
export const refusedChoice = (
  chosen: SelectedBackend,
  { placeOf, assistantRefusal }: Pick<Settings, 'placeOf' | 'assistantRefusal'>,
): ProjectProblem | null => {
  const { backend, model, name } = chosen;
  if (backend === 'builtin' && (name === 'scripted' || model?.disclaimer != null)) return null;
  const problem =
    backend === 'builtin' ? placeOf(name).refusal : assistantRefusal(backend, chosen.model);
  const remedy = 'name another model';
  return problem === null ? null : { path: name, problem: `cannot be used: ${problem}`, remedy };
};

export interface BackendSelector {
  now(run: RunOptions, role: Role): SelectedBackend;
  /** Checks the logins of assistants again before it answers that there is no backend. */
  afterLoginCheck(run: RunOptions, role: Role): Promise<SelectedBackend>;
  /** For an attempt of our own loop. @throws without a credential */
  requireModel(attempt: { readonly options: RunOptions; readonly role: Role }): {
    readonly model: Model;
    readonly name: string;
  };
  /** Price of an attempt of our own loop; undefined when unknown. Needs no credential. */
  priceFor(attempt: { readonly options: RunOptions; readonly role: Role }): Price | undefined;
  /** Why no limit of cost can be kept; null: the cost will be known, or there is none. */
  unknownPrice(run: RunOptions, role: Role): string | null;
  /** Refuses a cost limit when the price is unknown. @throws invalid_params */
  requireCost(run: RunOptions, role: Role): Promise<void>;
}

export interface BackendSelectorPorts {
  readonly settings: () => Settings;
  readonly selectModel: (requested: string) => Model | null;
  readonly assistants: Assistants;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Models whose price is not known are named once, in the log. */
const namedAtMost = 100;
const free: Price = { input: 0, cachedInput: 0, output: 0 };

export const createBackendSelector = ({
  settings,
  selectModel,
  assistants,
  log,
}: BackendSelectorPorts): BackendSelector => {
  const priceAt = (model: Model | null, name: string): Price | undefined =>
    model === null || model.disclaimer === null ? priceOf(settings(), name) : free;
  const unknown = new Set<string>();
  const requestedFor = (options: RunOptions, role: Role): string =>
    settings().roles[role].backend === 'scripted'
      ? 'scripted'
      : modelNameFor(settings(), options, role);
  const now = (run: RunOptions, role: Role): SelectedBackend =>
    selectBackend({ settings: settings(), selectModel, assistants }, run, role);
  const afterLook = async (run: RunOptions, role: Role): Promise<SelectedBackend> => {
    const chosen = now(run, role);
    if (chosen.backend !== 'builtin' || chosen.model !== null) return chosen;
    await assistants.checkLogins();
    return now(run, role);
  };
  const unknownPriceOf = (chosen: SelectedBackend): string | null => {
    const isKnown =
      chosen.backend === 'builtin'
        ? chosen.model === null || priceAt(chosen.model, chosen.name) !== undefined
        : assistants.of(chosen.backend)?.reportsCost === true ||
          priceForAssistant(settings(), chosen.model ?? '') !== undefined;
    return isKnown
      ? null
      : `the price of ${chosen.name} is not known, so no limit of cost and no budget can be kept; set it in api.prices`;
  };

  return {
    now,
    afterLoginCheck: afterLook,
    requireModel: ({ options, role }) => {
      const requested = requestedFor(options, role);
      const model = selectModel(requested);
      if (model === null) {
        const { missing: variable, remedy } = settings().placeOf(requested);
        throw new ServiceError('credential_missing', { variable, remedy });
      }
      return { model, name: model.disclaimer === null ? requested : model.name };
    },
    priceFor: ({ options, role }) => {
      const requested = requestedFor(options, role);
      const price = priceAt(selectModel(requested), requested);
      if (price === undefined && !unknown.has(requested) && unknown.size < namedAtMost) {
        unknown.add(requested);
        log('the price of a model is not known, so its cost is not counted; set it in api.prices', {
          model: requested,
        });
      }
      return price;
    },
    unknownPrice: (run, role) => unknownPriceOf(now(run, role)),
    requireCost: async (run, role) => {
      const problem = unknownPriceOf(await afterLook(run, role));
      if (problem === null) return;
      throw new ServiceError('invalid_params', {
        fields: [{ path: 'options.max_cost_usd', problem }],
      });
    },
  };
};
