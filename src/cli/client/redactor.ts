import type { Project } from '../config/places/project.ts';
import { remoteSecrets } from '../config/remote-credentials.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { storeFor, storeSecrets } from '../config/store.ts';
import { credentialsIn, secretsIn } from '../server/assistants.ts';
import { keptSecrets } from '../server/secrets/kept-keys.ts';
import { createRedactor } from '../server/secrets/redact.ts';
import { tokenFileFor } from '../server/secrets/token-file.ts';
import { traceSecrets } from '../server/traces.ts';

const serverTokens = (config: Config, project: Project): readonly string[] => {
  try {
    return [tokenFileFor(config, project).read()];
  } catch {
    // No server ever ran here, or one with another token, which it replaces itself.
    return [];
  }
};

/** Replaces the secrets that this shell and this project have. */
export const redactorFor = (
  { project, env }: { readonly project: Project; readonly env: NodeJS.ProcessEnv },
  config: Config,
): ((text: string) => string) => {
  const secrets = [
    ...secretsIn(config, credentialsIn(env), env),
    ...keptSecrets(env)(),
    ...traceSecrets(env),
    ...storeSecrets(storeFor(config, project, env)),
    ...serverTokens(config, project),
    ...remoteSecrets(project.root)(),
  ];
  return createRedactor(() => secrets);
};
