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

const ourKey = 'HKCU\\Software\\Classes\\agent';
const openKey = 'shell\\open\\command';

/** The command for a link. `agent open-url` refuses more or fewer than one argument. */
export const windowsOpenCommand = ({
  node,
  script,
}: {
  readonly node: string;
  readonly script: string;
}): string => `"${node}" "${script}" open-url -- "%1"`;

/** True for any installation of ours. */
const isOurs = (command: string): boolean => command.endsWith(' open-url -- "%1"');

/** The program in `%SystemRoot%`: a bare name could be found in the working folder first. */
const regOf = (env: NodeJS.ProcessEnv): string =>
  `${env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\reg.exe`;

/** Commands that add, read and delete this user's registry entries. Not yet tested. */
const registryCommands = (env: NodeJS.ProcessEnv, command: string) => {
  const reg = regOf(env);
  return {
    /** In this order: the last one activates the others. */
    add: [
      [reg, 'add', ourKey, '/ve', '/d', 'URL:Agent Task Server', '/f'],
      [reg, 'add', ourKey, '/v', 'URL Protocol', '/d', '', '/f'],
      [reg, 'add', `${ourKey}\\${openKey}`, '/ve', '/d', command, '/f'],
    ],
    /** The command of this user or of the machine. */
    askAll: [reg, 'query', `HKCR\\agent\\${openKey}`, '/ve'],
    askOurs: [reg, 'query', `${ourKey}\\${openKey}`, '/ve'],
    remove: [reg, 'delete', ourKey, '/f'],
  } as const;
};

export const registryCommandIn = (output: string): string | null =>
  /\sREG_(?:EXPAND_)?SZ\s+(\S.*)/.exec(output)?.[1]?.trimEnd() ?? null;

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
