import type { Config } from '../config/config-schema.ts';
import { type Project, stateFiles } from '../config/project.ts';
import { remoteSecrets } from '../config/remote-credentials.ts';
import { storeFor, storeSecrets } from '../config/store.ts';
import { credentialsIn, secretsIn } from '../server/assistants.ts';
import { readExistingToken } from '../server/private-files.ts';
import { createRedactor } from '../server/redact.ts';
import { traceSecrets } from '../server/traces.ts';

const serverTokens = ({ stateDir }: Project): readonly string[] => {
  try {
    return [readExistingToken(stateFiles(stateDir).token)];
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
    ...traceSecrets(env),
    ...storeSecrets(storeFor(config, project, env)),
    ...serverTokens(project),
    ...remoteSecrets(project.root)(),
  ];
  return createRedactor(() => secrets);
};
