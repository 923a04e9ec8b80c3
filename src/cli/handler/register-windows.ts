import {
  alreadyRegistered,
  type HandlerEnvironment,
  mustRun,
  notRegistered,
  type Registration,
  type Removal,
  registered,
  removed,
  taken,
  updated,
} from './registration.ts';
import { isOurs, registryCommandIn, registryCommands, windowsOpenCommand } from './windows.ts';

/** `reg query` fails when the key is missing. */
const queryCommand = async (
  { run }: HandlerEnvironment,
  argv: readonly string[],
): Promise<string | null> => {
  const { ok, detail } = await run(argv);
  return ok ? registryCommandIn(detail) : null;
};

export const registerOnWindows = async (environment: HandlerEnvironment): Promise<Registration> => {
  const { env, node, script, force } = environment;
  if (/["%]/.test(node + script))
    throw new Error(`Windows cannot start ${script} with ${node}: a path has a " or %`);
  const wanted = windowsOpenCommand({ node, script });
  const { add, askAll } = registryCommands(env, wanted);
  const current = await queryCommand(environment, askAll);
  if (current === wanted) return alreadyRegistered;
  const other = current === null || isOurs(current) ? null : current;
  if (other !== null && force !== true) return taken(other);
  for (const argv of add) await mustRun(environment, argv);
  return current === null || other !== null ? registered(other) : updated(script);
};

export const unregisterOnWindows = async (environment: HandlerEnvironment): Promise<Removal> => {
  const { askOurs, remove } = registryCommands(environment.env, '');
  const current = await queryCommand(environment, askOurs);
  if (current === null || !isOurs(current)) return notRegistered;
  await mustRun(environment, remove);
  return removed('the registry entries of agent://');
};
