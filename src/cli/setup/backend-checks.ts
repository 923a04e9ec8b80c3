import type { Assistants } from '../../actors/assistants/assistants.ts';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { isAssistantName } from '../../machines/agent/agent-context.ts';
import type { LoadedConfig } from '../config/config.ts';
import { placeOfModel, withChosenModel } from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { assistantsFor, takeCredentials } from '../server/assistants.ts';
import { modelNote, modelsFor } from '../server/models.ts';

export interface Check {
  readonly check: string;
  readonly status: 'ok' | 'note' | 'problem';
  readonly detail: string;
}

const roleChecks = ({ roles }: Config, assistants: Assistants): readonly Check[] =>
  Object.entries(roles).flatMap(([role, own]) => {
    if (own?.backend === undefined) return [];
    const problem = isAssistantName(own.backend) ? assistants.problem(own.backend) : null;
    const detail = `${own.backend}, by roles.${role}.backend`;
    return [
      problem === null
        ? { check: role, status: 'ok' as const, detail }
        : { check: role, status: 'problem' as const, detail: `${detail}, but ${problem}` },
    ];
  });

/** Reports the backend that a server would choose now, and why. */
export const backendChecks = async (
  loaded: LoadedConfig,
  given: NodeJS.ProcessEnv,
): Promise<readonly Check[]> => {
  const env = { ...given };
  const environment = childEnvironment(env);
  const credentials = takeCredentials(env);
  const variables = { ...env, ...credentials };
  const chosen = withChosenModel(loaded, variables);
  const { config } = chosen;
  const assistants = assistantsFor(config, { credentials, environment, env });
  const parts = { selectModel: modelsFor(chosen, variables), assistants };
  if (!modelNote(config, parts).ok) await assistants.checkLogins();
  const { ok, detail } = modelNote(config, parts);
  const scripted = config.api.backend === 'scripted';
  const { key, provider } = placeOfModel(config, config.api.provider_model, variables);
  const variable = provider.variables.find((name) => variables[name]);
  const why =
    ok && key !== null && !scripted && !isAssistantName(config.api.backend)
      ? `; ${provider.keyFile ?? (variable === undefined ? 'it needs no key' : `${variable} is set`)}`
      : '';
  const status = scripted ? 'note' : ok ? 'ok' : 'problem';
  return [
    { check: 'model', status, detail: `${detail.replace(/^none: /, '')}${why}` },
    ...roleChecks(config, assistants),
  ];
};
