import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import {
  folderFiles,
  instructionBytesAtMost,
  listInstructions,
} from '../../actors/agent/project-instructions.ts';
import { runHostProbes } from '../../actors/sandbox/host-probes.ts';
import { runSandboxProbes, type SandboxProbe } from '../../actors/sandbox/self-test.ts';
import type { Workspace } from '../../actors/workspace/port.ts';
import { messageOf } from '../../machines/message-of.ts';
import { someOf } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer, isSilent, refusedConfigOf } from '../client/find-server.ts';
import { hasTasks, openTasks } from '../client/open-tasks.ts';
import { redactorFor } from '../client/redactor.ts';
import type { Address } from '../client/transport.ts';
import { type LoadedConfig, loadConfig } from '../config/config.ts';
import { entryText, projectServers } from '../config/mcp-servers.ts';
import { missingPaths } from '../config/missing-paths.ts';
import { projectOrNone } from '../config/own-file.ts';
import { policyTexts } from '../config/policy.ts';
import { withChosenModel } from '../config/providers.ts';
import { remoteCredentials } from '../config/remote-credentials.ts';
import { sandboxFor } from '../config/sandbox.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { resolveSettings } from '../config/settings.ts';
import { storeFor } from '../config/store.ts';
import { bdFor, trackerFor } from '../config/tracker.ts';
import { heldNotes, requireTrustedOutside } from '../config/trusted-places.ts';
import { checkRepository, workspaceFor } from '../config/workspace.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { oneLine } from '../output/safe-text.ts';
import { type Style, styled } from '../output/styled.ts';
import { wrapAfter } from '../output/wrap.ts';
import { type ProjectRoleOutcome, projectRoleNote } from '../roles/apply-project-roles.ts';
import { takeCredentials } from '../server/assistants.ts';
import { assistantNetworkText, networkNotes } from '../server/notes.ts';
import { faultsOf } from '../server/server-status.ts';
import { surroundingsOf } from '../server/surroundings.ts';
import { version } from '../version.ts';
import { backendChecks, type Check } from './backend-checks.ts';
import { forgeChecks } from './forge-check.ts';
import { mcpChecks } from './mcp-checks.ts';
import { cacheChecks, interruptedChecks, mergeCheck, sourceChecks } from './project-checks.ts';
import { differencesFrom } from './server-differences.ts';

const onPath = (program: string, env: NodeJS.ProcessEnv): boolean =>
  (env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && existsSync(join(folder, program)));

const checkProgram = (
  { env }: CommandContext,
  name: string,
  without: string,
  needed: boolean,
): Check =>
  onPath(name, env)
    ? { check: name, status: 'ok', detail: 'found on PATH' }
    : { check: name, status: needed ? 'problem' : 'note', detail: without };

const checkTracker = async ({ project, env }: CommandContext, config: Config): Promise<Check> => {
  const redact = redactorFor({ project, env }, config);
  const choice = storeFor(config, project, env);
  const { ledger } = await openTasks(project, {
    kept: hasTasks(project, choice),
    choice,
    redact,
    log: () => {},
  });
  const chosen = trackerFor(
    config,
    project.root,
    env,
    () => {},
    () => ledger,
    redact,
  );
  try {
    await chosen.list();
    const { ok, detail } = await chosen.check();
    return { check: 'tracker', status: ok ? 'ok' : 'problem', detail };
  } catch (error) {
    return { check: 'tracker', status: 'problem', detail: messageOf(error) };
  }
};

const checkSandbox = ({ project }: CommandContext, config: Config): Check => {
  try {
    const { ok, detail } = sandboxFor(config, project).check();
    const status = !ok ? 'problem' : config.sandbox.mode === 'off' ? 'note' : 'ok';
    return { check: 'sandbox', status, detail };
  } catch (error) {
    return { check: 'sandbox', status: 'problem', detail: messageOf(error) };
  }
};

const checkAssistants = (loaded: LoadedConfig, { project }: CommandContext): Check => {
  const { mode, assistants: wanted } = loaded.config.sandbox;
  if (mode === 'off')
    return { check: 'assistants', status: 'note', detail: 'run as you, unconfined (sandbox.mode)' };
  if (wanted === 'off')
    return {
      check: 'assistants',
      status: 'note',
      detail: 'run as you, unconfined (sandbox.assistants)',
    };
  const reaches = assistantNetworkText(resolveSettings(loaded, project.root).settings);
  const isOpen = reaches.includes('the whole network');
  return {
    check: 'assistants',
    status: isOpen ? 'note' : 'ok',
    detail: `run in the sandbox; ${reaches}`,
  };
};

/** What the built-in agent is told of the project. */
const checkInstructions = async (
  workspace: Workspace,
  { project }: CommandContext,
  { workspace: { merge } }: Config,
): Promise<Check> => {
  const check = 'instructions';
  const isShared = workspace.mode === 'shared';
  if (isShared || merge !== 'none')
    return {
      check,
      status: 'note',
      detail: `AGENTS.md and skills are not read: with workspace.${isShared ? 'mode shared' : `merge ${merge}`} agents can change them, and nobody looks`,
    };
  const { files, skills, below } =
    (await workspace.readProject(null, listInstructions)) ??
    (await listInstructions(folderFiles(project.root)));
  const read = files.filter(({ text }) => text !== null);
  const bytes = read.reduce((sum, { text }) => sum + Buffer.byteLength(text ?? ''), 0);
  const parts = [
    ...read.map(({ path }) => path),
    ...(below.length === 0 ? [] : [`for files beside or below them ${someOf(below)}`]),
    ...(skills.length === 0 ? [] : [`the skills ${someOf(skills.map(({ name }) => name))}`]),
  ];
  const faults = [
    ...files.flatMap(({ path, text }) =>
      text === null ? [`${path} is not read: it is no text, or larger than 1 MiB`] : [],
    ),
    ...(bytes > instructionBytesAtMost
      ? [`of ${bytes} bytes an agent is shown ${instructionBytesAtMost}`]
      : []),
  ];
  const what = parts.length === 0 ? [] : [`the built-in agent reads ${parts.join('; ')}`];
  const none = 'no AGENTS.md, CLAUDE.md or .agents/skills';
  return {
    check,
    status: faults.length === 0 ? 'ok' : 'note',
    detail: oneLine([...what, ...faults].join('; ') || none, 1_000),
  };
};

const checkWorkspace = async (
  context: CommandContext,
  loaded: LoadedConfig,
): Promise<readonly Check[]> => {
  const { project, env } = context;
  const { config } = loaded;
  const workspace = await workspaceFor(loaded, project, env);
  const detail = workspace.describe();
  const isRefused = detail.startsWith('runs are refused');
  const repository = await checkRepository(config, workspace, storeFor(config, project, env));
  return [
    { check: 'workspace', status: isRefused ? 'problem' : 'ok', detail },
    ...(isRefused
      ? []
      : await tryCheck('instructions', () => checkInstructions(workspace, context, config))),
    ...(repository === null ? [] : [{ check: 'repository', ...repository }]),
  ];
};

const checkBd = async (
  { project, env }: Pick<CommandContext, 'project' | 'env'>,
  config: Config,
): Promise<Check> => {
  const found = await bdFor(config, project.root, env).detect();
  const detail = found.state === 'ok' ? `${found.detail} at ${found.program.path}` : found.detail;
  return { check: 'bd', status: found.state === 'ok' ? 'ok' : 'note', detail };
};

const checkForge = async (
  { project, env }: CommandContext,
  loaded: LoadedConfig,
): Promise<readonly Check[]> => {
  const workspace = await workspaceFor(loaded, project, env);
  const config = () => loaded.config.forge;
  return forgeChecks({ config, variables: env, workspace, now: Date.now });
};

/** Everyone who reads the project could use the credential, agents included. */
const checkRemotes = ({ project }: CommandContext): readonly Check[] =>
  remoteCredentials(project.root).map(({ host }) => ({
    check: 'remote',
    status: 'note',
    detail: `.git/config contains a credential for ${host}; remove it (git remote set-url) and use a credential helper`,
  }));

/** They are nothing to us until the user names them in the own configuration. */
const checkProjectServers = ({ project }: CommandContext, { mcp }: Config): readonly Check[] =>
  projectServers(project.root).map((offered) => {
    const { name, fingerprint } = offered;
    const isAllowed = mcp.servers[name]?.project === fingerprint;
    return {
      check: 'mcp',
      status: isAllowed ? 'ok' : 'note',
      detail: isAllowed
        ? `${oneLine(name, 60)} of .mcp.json is allowed`
        : `.mcp.json names ${oneLine(name, 60)}: ${entryText(offered)}; agents do not use it; to allow it as it is, add to your configuration (agent config edit): {"mcp": {"servers": {${oneLine(JSON.stringify(name), 60)}: {"project": "${fingerprint}"}}}}`,
    };
  });

const differenceChecks = async (
  { env }: CommandContext,
  loaded: LoadedConfig,
  address: Address,
): Promise<readonly Check[]> => {
  const chosen = withChosenModel(loaded, env);
  const here = surroundingsOf(chosen, takeCredentials({ ...env }), env['PATH']);
  const found = await differencesFrom(here, address, env).catch((error: unknown) => [
    `it cannot be asked how it differs: ${messageOf(error)}`,
  ]);
  if (found.length === 0) return [];
  return [...found, 'it takes what this shell has at: agent server restart'].map((detail) => ({
    check: 'server',
    status: 'note',
    detail,
  }));
};

const checkServer = async (
  context: CommandContext,
  loaded: LoadedConfig,
): Promise<readonly Check[]> => {
  const address = await findServer(context.project).catch((error: unknown) => {
    if (isSilent(error)) return messageOf(error);
    throw error;
  });
  if (address === null) return [{ check: 'server', status: 'ok', detail: 'not running' }];
  if (typeof address === 'string') return [{ check: 'server', status: 'problem', detail: address }];
  const faults = await faultsOf(address);
  const detail = [`running at ${address.url}`, ...faults].join('; ');
  return [
    { check: 'server', status: faults.length === 0 ? 'ok' : 'problem', detail },
    ...(address.refusesConfig === true
      ? [
          {
            check: 'configuration',
            status: 'problem' as const,
            detail: await refusedConfigOf(address),
          },
        ]
      : []),
    ...(await differenceChecks(context, loaded, address)),
    ...(await tryCheck('quarantine', () => interruptedChecks(address))),
    ...(loaded.config.tracker.sources.length === 0
      ? []
      : await tryCheck('source', () => sourceChecks(address))),
  ];
};

/** When the folder is missing, its parent must be writable. */
const checkState = ({ project: { stateDir } }: CommandContext): Check => {
  let folder = stateDir;
  while (!existsSync(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
    return { check: 'state', status: 'ok', detail: stateDir };
  } catch (error) {
    const words = messageOf(error);
    return {
      check: 'state',
      status: 'problem',
      detail: `${stateDir} cannot be used (${words}); set AGENT_STATE_DIR`,
    };
  }
};

/** Includes ignored files. */
const checkProjectRoles = (outcomes: readonly ProjectRoleOutcome[]): readonly Check[] =>
  outcomes.map((outcome) => ({
    check: 'roles',
    status: outcome.ignored === null ? 'ok' : 'note',
    detail: projectRoleNote(outcome),
  }));

const configFileText = ({ file, fileChosen }: LoadedConfig): string => {
  if (file === null) return 'built-in defaults (no file)';
  return fileChosen ? file : `${file} (the default file)`;
};

const checkStyles: Readonly<Record<string, Style>> = {
  ok: 'green',
  problem: 'red',
  note: 'yellow',
};

const printChecks = (io: Io, checks: readonly Check[]): void => {
  const column = Math.max(...checks.map(({ check }) => check.length)) + 2;
  io.out([styled('bold', `STATUS   ${'CHECK'.padEnd(column)}DETAIL`)]);
  for (const { check, status, detail } of checks) {
    const start = `${status.padEnd(8)} ${check.padEnd(column)}`;
    const row = wrapAfter(start, detail, io.width);
    io.out([
      styled(checkStyles[status] ?? 'dim', row.slice(0, status.length)),
      row.slice(status.length),
    ]);
  }
  io.out('\nthe configuration that counts: agent config');
};

/** A check that throws is a problem of its own: the others are shown, too. */
const tryCheck = async (
  check: string,
  look: () => Check | readonly Check[] | Promise<Check | readonly Check[]>,
): Promise<readonly Check[]> => {
  try {
    return [await look()].flat();
  } catch (error) {
    return [{ check, status: 'problem', detail: messageOf(error) }];
  }
};

/** One cause may stop several checks. */
const oncePerProblem = (checks: readonly Check[]): readonly Check[] =>
  checks.filter(
    ({ status, detail }, at) =>
      status !== 'problem' || checks.findIndex((other) => other.detail === detail) === at,
  );

const checkConfig = (loaded: LoadedConfig): readonly Check[] => [
  { check: 'config', status: 'ok', detail: configFileText(loaded) },
  ...policyTexts(loaded).map((detail) => ({ check: 'policy', status: 'note' as const, detail })),
  ...loaded.policyWarnings.map((detail) => ({
    check: 'policy',
    status: 'problem' as const,
    detail,
  })),
  ...missingPaths(loaded).map((detail) => ({
    check: 'config',
    status: 'problem' as const,
    detail,
  })),
];

const checkSettings = (loaded: LoadedConfig, { project }: CommandContext): readonly Check[] => {
  const { settings, projectRoles } = resolveSettings(loaded, project.root);
  return [
    { check: 'agents', status: 'ok', detail: `at most ${settings.cap} at once` },
    ...checkProjectRoles(projectRoles),
    ...networkNotes(settings, loaded.config).map((detail) => ({
      check: 'network',
      status: 'note' as const,
      detail,
    })),
  ];
};

/** A server that runs may have refused the same configuration. @throws ConfigError */
const loadChecked = async (
  { project, io, env }: CommandContext,
  configFile: string | undefined,
): Promise<LoadedConfig> => {
  try {
    const loaded = loadConfig({ config: configFile, project }, env);
    resolveSettings(loaded, project.root);
    return loaded;
  } catch (error) {
    const address = await findServer(project).catch(() => null);
    if (address?.refusesConfig === true) io.err(`warning: ${await refusedConfigOf(address)}`);
    throw error;
  }
};

const checkVersion: Check = {
  check: 'version',
  status: 'ok',
  detail: `agent-task-server ${version}, node ${process.version}`,
};

/** Programs that every project uses. */
const checkPrograms = (context: CommandContext): readonly Check[] => [
  checkProgram(context, 'git', 'needed by most projects', false),
  checkProgram(context, 'grep', 'needed by the tool grep', true),
];

/** Checks of the machine and of your file for every project, where no project can be. */
const checkWithoutProject = async (
  { context, project, refusal }: ReturnType<typeof projectOrNone> & { context: CommandContext },
  configFile: string | undefined,
): Promise<readonly Check[]> => {
  const { env } = context;
  const loaded = loadConfig({ config: configFile, project }, env);
  return [
    checkVersion,
    { check: 'project', status: 'problem', detail: messageOf(refusal) },
    ...checkConfig(loaded),
    ...(await tryCheck('model', () => backendChecks(loaded, env))),
    ...checkPrograms(context),
    ...(await tryCheck('bd', () => checkBd({ project, env }, loaded.config))),
  ];
};

const printedCode = (
  { io, json }: Pick<CommandContext, 'io' | 'json'>,
  checks: readonly Check[],
  config?: Config,
): number => {
  if (json) io.json({ checks, config });
  else printChecks(io, checks);
  return checks.some(({ status }) => status === 'problem') ? exitCodes.failed : exitCodes.done;
};

/** Exit code 1 if a check finds a problem. @throws ConfigError when the configuration is not valid */
export const doctor = async (
  context: CommandContext,
  configFile: string | undefined,
): Promise<number> => {
  const found = projectOrNone(context);
  const { project } = found;
  if (found.refusal !== null) {
    context.io.err(`agent: ${found.refusal.message}`);
    printedCode(context, await checkWithoutProject({ context, ...found }, configFile));
    return exitCodes.configuration;
  }
  const { env } = context;
  const loaded = await loadChecked(context, configFile);
  const { config } = loaded;
  const trusted = requireTrustedOutside(loaded, project, env);
  const checks: readonly Check[] = [
    checkVersion,
    { check: 'project', status: 'ok', detail: project.root },
    checkState(context),
    ...checkConfig(loaded),
    ...heldNotes(trusted).map((detail) => ({ check: 'config', status: 'note' as const, detail })),
    ...checkSettings(loaded, context),
    ...(await tryCheck('model', () => backendChecks(loaded, env))),
    ...(await tryCheck('cache', () => cacheChecks(context, loaded))),
    ...(await tryCheck('tracker', () => checkTracker(context, config))),
    ...(await tryCheck('server', () => checkServer(context, loaded))),
    ...(await tryCheck('sandbox', () => checkSandbox(context, config))),
    checkAssistants(loaded, context),
    ...(await tryCheck('workspace', () => checkWorkspace(context, loaded))),
    ...(await tryCheck('merge', () => mergeCheck(project.root, config, env))),
    ...(await tryCheck('mcp', () => checkProjectServers(context, config))),
    ...(await tryCheck('mcp', () => mcpChecks(context, config))),
    ...(await tryCheck('remote', () => checkRemotes(context))),
    ...(await tryCheck('forge', () => checkForge(context, loaded))),
    ...checkPrograms(context),
    ...(await tryCheck('bd', () => checkBd(context, config))),
  ];
  return printedCode(context, oncePerProblem(checks), config);
};

const probeVerdict = ({ held, tried }: SandboxProbe): string => {
  if (!tried) return 'NOT RUN';
  return held ? 'held   ' : 'ESCAPED';
};

export const probeSandbox = async (
  { io, env, json, project }: CommandContext,
  configFile: string | undefined,
): Promise<number> => {
  const { config } = loadConfig({ config: configFile, project }, env);
  const held = sandboxFor(config, project);
  const { ok, detail } = held.check();
  if (!ok || config.sandbox.mode === 'off') {
    if (json) io.json({ sandbox: detail, probes: [] });
    io.err(`agent: there is no sandbox to test: ${detail}`);
    return exitCodes.failed;
  }
  const probes = [...(await runSandboxProbes(held)), ...(await runHostProbes(held))];
  const escaped = probes.filter((probe) => !probe.held);
  if (json) io.json({ sandbox: detail, probes });
  else {
    for (const probe of probes) io.out(`${probeVerdict(probe)}  ${probe.name}`);
    io.out(`${probes.length - escaped.length} of ${probes.length} held (${detail})`);
  }
  return escaped.length === 0 ? exitCodes.done : exitCodes.failed;
};
