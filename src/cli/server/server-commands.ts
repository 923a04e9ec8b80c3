import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { isAlive } from '../../actors/process/pid.ts';
import { CallError } from '../client/client.ts';
import { findServer, isSilent } from '../client/find-server.ts';
import { tasksIn } from '../client/task-answers.ts';
import { stateFiles } from '../config/project.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { CommandContext } from '../tasks/commands.ts';
import { ensurePrivateFolder, readToken } from './private-files.ts';
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

/** Tasks that were at work when the server stopped; none where that cannot be read. */
const parkedTasks = async ({ connection }: CommandContext): Promise<readonly TaskView[]> => {
  try {
    const client = await connection.files();
    return client.live ? [] : tasksIn(await client.call('list', { status: 'started' }));
  } catch {
    return [];
  }
};

/** Sends SIGTERM and waits for the end. @throws CallError after the time limit */
export const stopServerCommand = async (context: CommandContext): Promise<number> => {
  const { project, io, json } = context;
  const isRunning = await findServer(project).then((address) => address !== null, isSilentServer);
  const file = readServerFile(stateFiles(project.stateDir).server);
  if (!isRunning || file === null) {
    if (json) io.json({ running: false, stopped: false });
    else io.out(`no server runs for ${project.root}`);
    return exitCodes.done;
  }
  const { pid } = file;
  process.kill(pid, 'SIGTERM');
  for (
    const deadline = performance.now() + stopWithinMs;
    performance.now() < deadline;
    await delay(stopPollMs)
  ) {
    if (isAlive(pid)) continue;
    const parked = await parkedTasks(context);
    if (json) {
      const ids = parked.map(({ task_id }) => task_id);
      io.json({ running: false, stopped: true, pid, ...(ids.length === 0 ? {} : { parked: ids }) });
    } else {
      io.out(`the server (pid ${pid}) has stopped`);
      for (const { task_id, role, attempt } of parked)
        io.out(`  ${task_id} (${role}, attempt ${attempt}) goes on when a server starts`);
    }
    return exitCodes.done;
  }
  throw new CallError(
    'server_not_stopped',
    `the server (pid ${pid}) did not stop; end it with: kill -9 ${pid}`,
  );
};

export const showToken = async ({ project, io, json }: CommandContext): Promise<number> => {
  ensurePrivateFolder(project.stateDir);
  const { token } = stateFiles(project.stateDir);
  if (json) io.json({ token: readToken(token), file: token });
  else io.out(readToken(token));
  return exitCodes.done;
};

/** A running server uses the new token from its next request on. */
export const rotateToken = async ({ project, io, json }: CommandContext): Promise<number> => {
  ensurePrivateFolder(project.stateDir);
  const { token } = stateFiles(project.stateDir);
  await writeFileAtomically(token, `${randomBytes(32).toString('base64url')}\n`);
  if (json) io.json({ file: token });
  else io.out(`a new token is in ${token}; the old one no longer works`);
  return exitCodes.done;
};
