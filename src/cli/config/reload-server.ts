import { setTimeout } from 'node:timers/promises';
import type { CommandContext } from '../client/command-context.ts';
import { findServer, isSilent, refusedConfigOf } from '../client/find-server.ts';
import { needsRestart } from '../server/reload.ts';
import { readServerFile } from '../server/server-file.ts';
import { configNow } from './config.ts';
import type { Config } from './config-schema.ts';
import { readByServer, type Target } from './own-file.ts';
import { stateFiles } from './project.ts';

/** On Windows the signal would end the server. */
const canReload = process.platform !== 'win32';

/** The pid of a server that has proved itself; null where none runs. */
const pidOfServer = async ({ project }: CommandContext): Promise<number | null> => {
  const isThere = await findServer(project).then(
    (address) => address !== null,
    (error: unknown) => {
      if (isSilent(error)) return true;
      throw error;
    },
  );
  return isThere ? (readServerFile(stateFiles(project.stateDir).server)?.pid ?? null) : null;
};

export const otherServersNote = 'note: servers of other projects read it when they start again';

const looksAfterMs = [250, 1_000] as const;

/** What the server says of its files once it has read them; null: it took them. */
const refusalAfterReload = async ({ project }: CommandContext): Promise<string | null> => {
  for (const ms of looksAfterMs) {
    await setTimeout(ms);
    const address = await findServer(project).catch(() => null);
    if (address?.refusesConfig !== true) return null;
    if (ms === looksAfterMs.at(-1)) return refusedConfigOf(address);
  }
  return null;
};

/**
 * Lets the server of this project read its files again, and names what it reads only when it starts.
 * Of the servers of other projects nothing is known. `before`: what counted before the change.
 */
export const reloadServer = async (
  context: CommandContext,
  scope: Target['scope'],
  before: Config | null,
): Promise<void> => {
  const { io } = context;
  const pid = await pidOfServer(context);
  const read = readByServer(context);
  const after = configNow({ config: read.config, project: context.project }, read.env);
  const kept = before === null || after === null ? ['it'] : needsRestart(before, after);
  if (pid !== null && canReload) process.kill(pid, 'SIGHUP');
  const refusal = pid !== null && canReload ? await refusalAfterReload(context) : null;
  if (refusal !== null) io.err(`warning: ${refusal}`);
  else if (pid !== null)
    io.err(
      kept.length === 0 && canReload
        ? 'note: the server that runs uses it from now on'
        : `note: the server that runs reads ${kept.join(', ') || 'it'} when it starts again: agent server restart`,
    );
  if (scope === 'everywhere') io.err(otherServersNote);
};
