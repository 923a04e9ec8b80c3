import type { Assistant as AssistantName, Backend } from '../../machines/agent-context.ts';
import type { Role, RunOptions } from '../../machines/task.ts';
import type { Assistants } from '../assistants/assistants.ts';
import type { Model } from '../model/port.ts';
import { modelNameFor, type Settings } from './settings.ts';

/** Who does the work of a run. */
export type SelectedBackend =
  | {
      readonly backend: 'builtin';
      /** Null when it cannot be called for want of a credential. */
      readonly model: Model | null;
      readonly name: string;
    }
  | {
      readonly backend: AssistantName;
      /** The one that the user named, or null for the assistant's own choice. */
      readonly model: string | null;
      /** For people. */
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
  return { backend: name, model, name: model === null ? name : `${name} with ${model}`, problem };
};

/** The scripted model, where somebody names it, is played by our own loop. */
const requestedBackend = ({ settings }: SelectionInput, run: RunOptions, role: Role): Backend | 'auto' => {
  const { backend, model } = settings.roles[role];
  const choice = backend ?? settings.backend;
  return (run.model ?? model) === 'scripted' || choice === 'scripted' ? 'builtin' : choice;
};

/**
 * Who does the work (CONTRACT 8): whom the role or the service names; else our loop when there is a key; else an assistant
 * that is logged in. One that cannot ask a person is not chosen by itself for a role whose calls a person must allow.
 */
export const selectBackend = (input: SelectionInput, run: RunOptions, role: Role): SelectedBackend => {
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

/** The variable of the key that is missing, and why the assistant that was asked for cannot stand in for it. */
export const missingFor = (
  chosen: SelectedBackend,
  variable: string,
): { readonly missingCredential: string | null; readonly assistantProblem?: string } => {
  if (chosen.backend === 'builtin') return { missingCredential: chosen.model === null ? variable : null };
  return chosen.problem === null
    ? { missingCredential: null }
    : { missingCredential: variable, assistantProblem: chosen.problem };
};
