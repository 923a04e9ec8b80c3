import type { Assistant as AssistantName, Backend } from '../../machines/agent-context.ts';
import type { Role, RunOptions } from '../../machines/task.ts';
import type { Assistants } from '../assistants/assistants.ts';
import type { Model } from '../model/port.ts';
import { modelNameFor, type Settings } from './settings.ts';

/** Who does the work of a run. */
export type Chosen =
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

interface Choosing {
  readonly settings: Settings;
  readonly selectModel: (requested: string) => Model | null;
  readonly assistants: Assistants;
}

const ourModel = ({ selectModel }: Choosing, requested: string): Chosen => {
  const model = selectModel(requested);
  return { backend: 'builtin', model, name: model?.disclaimer == null ? requested : model.name };
};

const assistantOf = ({ settings, assistants }: Choosing, name: AssistantName, run: RunOptions, role: Role): Chosen => {
  const model = run.model ?? settings.roles[role].model;
  const problem = assistants.problem(name);
  return { backend: name, model, name: model === null ? name : `${name} with ${model}`, problem };
};

/** The scripted model, where somebody names it, is played by our own loop. */
const wanted = ({ settings }: Choosing, run: RunOptions, role: Role): Backend | 'auto' => {
  const { backend, model } = settings.roles[role];
  const choice = backend ?? settings.backend;
  return (run.model ?? model) === 'scripted' || choice === 'scripted' ? 'builtin' : choice;
};

/**
 * Who does the work (CONTRACT 8): whom the role or the service names; else our loop when there is a key; else an assistant
 * that is logged in. One that cannot ask a person is not chosen by itself for a role whose calls a person must allow.
 */
export const choose = (choosing: Choosing, run: RunOptions, role: Role): Chosen => {
  const { settings, assistants } = choosing;
  const scripted = settings.roles[role].backend === 'scripted';
  const requested = scripted ? 'scripted' : modelNameFor(settings, run, role);
  const choice = wanted(choosing, run, role);
  if (choice !== 'auto' && choice !== 'builtin') return assistantOf(choosing, choice, run, role);
  const ours = ourModel(choosing, requested);
  if (choice === 'builtin' || (ours.backend === 'builtin' && ours.model !== null)) return ours;
  const other = settings.roles[role].approvals.length > 0 ? null : assistants.loggedIn();
  return other === null ? ours : assistantOf(choosing, other, run, role);
};

/** The variable of the key that is missing, and why the assistant that was asked for cannot stand in for it. */
export const missing = (
  chosen: Chosen,
  variable: string,
): { readonly missingCredential: string | null; readonly assistantProblem?: string } => {
  if (chosen.backend === 'builtin') return { missingCredential: chosen.model === null ? variable : null };
  return chosen.problem === null
    ? { missingCredential: null }
    : { missingCredential: variable, assistantProblem: chosen.problem };
};
