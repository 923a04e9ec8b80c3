import type { Client } from '../client/client.ts';
import type { Io } from '../output/io.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import type { FollowedRun, StartedRun } from './outcome.ts';

/** A task that an earlier run asked for is followed, too: it is not started twice. */
export const attach = async (client: Client, io: Io, run: StartedRun): Promise<FollowedRun> => {
  const running = new Set(
    run.skipped.filter(({ code }) => code === 'already_running').map(({ task_id }) => task_id),
  );
  if (running.size === 0) return { ...run, attached: [] };
  const { tasks } = await fetchTasks(client, io, { status: 'active' }, null);
  const attached = tasks.filter(({ task_id }) => running.has(task_id));
  const ids = new Set(attached.map(({ task_id }) => task_id));
  return { ...run, attached, skipped: run.skipped.filter(({ task_id }) => !ids.has(task_id)) };
};
