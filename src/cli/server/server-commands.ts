import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { isAlive } from '../../actors/process/pid.ts';
import { CallError } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer, isSilent } from '../client/find-server.ts';
import { getJson } from '../client/http-request.ts';
import { loadConfig } from '../config/config.ts';
import { stateFiles } from '../config/places/project.ts';
import { resolveSettings } from '../config/settings.ts';
import type { Common } from '../declarations/command.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { type Cell, renderTable } from '../output/render/table.ts';
import { stripControls } from '../output/safe-text.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import { UsageError } from '../words/usage-error.ts';
import { leftText } from './left-text.ts';
import { ensurePrivateFolder } from './secrets/private-files.ts';
import { type TokenFile, tokenFileFor } from './secrets/token-file.ts';
import { readServerFile } from './server-file.ts';
import { statusOfServer } from './server-status.ts';

const stopWithinMs = 15_000;
const stopPollMs = 50;

export const startServerCommand = async (context: CommandContext): Promise<number> => {
  await context.connection.server();
  return statusOfServer(context);
};

/** A server that does not answer still takes a signal. */
const isSilentServer = (error: unknown): true => {
  if (isSilent(error)) return true;
  throw error;
};

interface LeftTasks {
  /** They were at work. */
  readonly parked: readonly TaskView[];
  /** They were asked to run and have not begun. */
  readonly waiting: readonly TaskView[];
}

/** Tasks that go on when a server starts; none where that cannot be read. */
const leftTasks = async ({ connection, io }: CommandContext): Promise<LeftTasks> => {
  try {
    const client = await connection.files();
    const { tasks: active } = client.live
      ? { tasks: [] }
      : await fetchTasks(client, io, { status: 'active' }, null);
    // Of a task that somebody else has taken, the phase says no more.
    const ours = active.filter(({ phase }) => phase !== 'started');
    const isParked = ({ status }: TaskView): boolean => status === 'started';
    return {
      parked: ours.filter(isParked),
      waiting: ours.filter((task) => !isParked(task)),
    };
  } catch {
    return { parked: [], waiting: [] };
  }
};

interface StoppedServer extends LeftTasks {
  readonly pid: number;
}

/**
 * Sends SIGTERM and waits for the end. @returns null when none runs @throws CallError after the
 * time limit
 */
const stopServer = async (context: CommandContext): Promise<StoppedServer | null> => {
  const { project } = context;
  const isRunning = await findServer(project).then((address) => address !== null, isSilentServer);
  const file = readServerFile(stateFiles(project.stateDir).server);
  if (!isRunning || file === null) return null;
  const { pid } = file;
  process.kill(pid, 'SIGTERM');
  for (
    const deadline = performance.now() + stopWithinMs;
    performance.now() < deadline;
    await delay(stopPollMs)
  )
    if (!isAlive(pid)) return { pid, ...(await leftTasks(context)) };
  throw new CallError(
    'server_not_stopped',
    `the server (pid ${pid}) did not stop; end it with: kill -9 ${pid}`,
  );
};

const tasksNamedAtMost = 5;

const stoppedLines = ({ pid, parked, waiting }: StoppedServer, when: string): readonly string[] => {
  const more = parked.length - tasksNamedAtMost;
  return [
    `the server (pid ${pid}) has stopped`,
    ...(parked.length + waiting.length === 0
      ? []
      : [`${leftText(parked.length, waiting.length)} ${when}`]),
    ...parked
      .slice(0, tasksNamedAtMost)
      .map(({ task_id, role, attempt }) => `  ${task_id} (${role}, attempt ${attempt})`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
};

export const stopServerCommand = async (context: CommandContext): Promise<number> => {
  const { project, io, json } = context;
  const stopped = await stopServer(context);
  if (json) {
    const ids = (tasks: readonly TaskView[] = []) => tasks.map(({ task_id }) => task_id);
    const [parked, waiting] = [ids(stopped?.parked), ids(stopped?.waiting)];
    io.json({
      running: false,
      stopped: stopped !== null,
      pid: stopped?.pid,
      ...(parked.length === 0 ? {} : { parked }),
      ...(waiting.length === 0 ? {} : { waiting }),
    });
  } else if (stopped === null) io.out(`no server runs for ${project.root}`);
  else
    for (const line of stoppedLines(stopped, 'when a server starts: agent server start'))
      io.out(line);
  return exitCodes.done;
};

/**
 * The next server has the environment and the configuration of this command. A configuration that
 * is not valid stops nothing. @throws ConfigError
 */
export const restartServerCommand = async (
  context: CommandContext,
  { config, start }: Pick<Common, 'config' | 'start'>,
): Promise<number> => {
  const { project, env, io, json } = context;
  if (!start) throw new UsageError('server restart starts a server; leave out --no-start');
  resolveSettings(loadConfig({ config, project }, env), project.root);
  const stopped = await stopServer(context);
  if (stopped !== null && !json)
    for (const line of stoppedLines(stopped, 'with the next one')) io.out(line);
  return startServerCommand(context);
};

/** As a server that is started from here has it. @throws ConfigError */
const tokenFile = ({ project, env }: CommandContext, config: string | undefined): TokenFile => {
  ensurePrivateFolder(project.stateDir);
  return tokenFileFor(loadConfig({ config, project }, env).config, project);
};

/** @throws ConfigError, PrivateFileError */
export const showToken = async (
  context: CommandContext,
  config: string | undefined,
): Promise<number> => {
  const { io, json } = context;
  const file = tokenFile(context, config);
  const token = file.readAtStart();
  if (json) io.json({ token, file: file.path });
  else io.out(token);
  return exitCodes.done;
};

/** A running server uses the new token from its next request on. */
export const rotateToken = async (
  context: CommandContext,
  config: string | undefined,
): Promise<number> => {
  const { io, json } = context;
  const { path, isShared } = tokenFile(context, config);
  if (isShared)
    throw new UsageError(
      `other servers use ${path}, too (server.token_file); put a new token there, on each machine`,
    );
  await writeFileAtomically(path, `${randomBytes(32).toString('base64url')}\n`);
  if (json) io.json({ file: path });
  else io.out(`a new token is in ${path}; the old one no longer works`);
  return exitCodes.done;
};

const healthMs = 5_000;

const nodeSchema = z.looseObject({
  name: z.string(),
  this: z.boolean(),
  state: z.string(),
  slots: z.number(),
  running: z.number(),
  waiting: z.number(),
  version: z.string().optional(),
  roles: z.array(z.string()).nullish(),
});
type ShownNode = z.infer<typeof nodeSchema>;
const healthSchema = z.looseObject({ nodes: z.array(nodeSchema).optional() });

const header = ['NAME', 'STATE', 'RUNNING', 'SLOTS', 'WAITING', 'VERSION', 'ROLES'];

const nodeRow = ({ name, state, running, slots, waiting, version, roles, ...node }: ShownNode) =>
  [
    node.this ? `${name} (this)` : name,
    state,
    String(running),
    String(slots),
    String(waiting),
    version ?? '-',
    roles?.length === 0 ? 'none' : (roles?.join(', ') ?? 'all'),
  ].map((text): Cell => ({ text: stripControls(text) }));

/** Prints the servers that share the store. Exit code 6 if no server of this project runs. */
export const showNodes = async ({ project, io, json }: CommandContext): Promise<number> => {
  const address = await findServer(project);
  if (address === null) {
    if (json) io.json({ running: false });
    else io.out(`no server runs for ${project.root}; start one with: agent server start`);
    return exitCodes.unavailable;
  }
  const { nodes } = healthSchema.parse(await getJson(address, '/health', healthMs));
  if (json) io.json({ running: true, nodes: nodes ?? [] });
  else if (nodes === undefined)
    io.out(
      'this server shares its store with no other one: the tasks are in a file of this machine',
    );
  else io.out(renderTable(header, nodes.map(nodeRow), io.width));
  return exitCodes.done;
};
