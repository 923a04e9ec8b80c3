import type { CommandContext } from '../client/command-context.ts';
import { findServer, isSilent } from '../client/find-server.ts';
import { needsRestart } from '../server/reload.ts';
import { readServerFile } from '../server/server-file.ts';
import { configNow } from './config.ts';
import type { Config } from './config-schema.ts';
import type { Target } from './own-file.ts';
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
  const after = configNow({ project: context.project }, context.env);
  const kept = before === null || after === null ? ['it'] : needsRestart(before, after);
  if (pid !== null && canReload) process.kill(pid, 'SIGHUP');
  if (pid !== null)
    io.err(
      kept.length === 0 && canReload
        ? 'note: the server that runs uses it from now on'
        : `note: the server that runs reads ${kept.join(', ') || 'it'} when it starts again: agent server restart`,
    );
  if (scope === 'everywhere')
    io.err('note: servers of other projects read it when they start again');
};
