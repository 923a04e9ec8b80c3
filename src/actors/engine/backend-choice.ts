import type { AssistantName, Backend } from '../../machines/agent-context.ts';
import type { Finding, Role, RunOptions } from '../../machines/task.ts';
import type { Assistants } from '../assistants/assistants.ts';
import type { Model } from '../model/port.ts';
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

export const credentialRemedy =
  "set it to your provider's key, log in to a coding assistant ('codex login' or 'claude auth login'), or choose the built-in fake model 'scripted'";

type MissingCredential = Pick<
  Finding,
  'missingCredential' | 'assistantProblem' | 'credentialRemedy'
>;

export const missingFor = (chosen: SelectedBackend, variable: string): MissingCredential => {
  const missing = { missingCredential: variable, credentialRemedy };
  if (chosen.backend === 'builtin')
    return chosen.model === null ? missing : { missingCredential: null };
  return chosen.problem === null
    ? { missingCredential: null }
    : { ...missing, assistantProblem: chosen.problem };
};
