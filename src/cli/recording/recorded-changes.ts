import type { Recording } from '../../actors/journal/replay/recording.ts';
import type { Changes } from '../../actors/workspace/port.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { workspaceFor } from '../config/workspace.ts';
import { askForWork } from '../work/work-commands.ts';

const patchBytesAtMost = 5 * 1024 * 1024;

/** Whole files from the beginning of a patch, as many as fit. */
export const fittingPatch = (patch: string, bytesAtMost = patchBytesAtMost) => {
  const files = patch.split(/^(?=diff --git )/m);
  let left = bytesAtMost;
  const fitting = files.filter((file) => {
    left -= Buffer.byteLength(file);
    return left >= 0;
  });
  return { patch: fitting.join(''), files_left_out: files.length - fitting.length };
};

export const asRecorded = ({ attempt, patch, guarded }: Changes): Recording['changes'] => ({
  attempt,
  guarded: [...guarded],
  ...fittingPatch(patch),
});

const readWorkspace = async (
  { project, env }: CommandContext,
  config: string | undefined,
  taskId: TaskId,
): Promise<Changes | null> => {
  const workspace = await workspaceFor(loadConfig({ config, project }, env), project, env);
  return workspace.diff(taskId, null);
};

/** The changes of the latest attempt; null when it has no branch of its own. */
export const recordedChanges = async (
  context: CommandContext,
  client: Client,
  config: string | undefined,
  taskId: TaskId,
): Promise<Recording['changes']> => {
  try {
    const found = client.live
      ? await askForWork(client, taskId)
      : await readWorkspace(context, config, taskId);
    if (found === null) return null;
    return asRecorded(found);
  } catch (error) {
    context.io.err(`note: the file is without the changes of the task: ${messageOf(error)}`);
    return null;
  }
};
