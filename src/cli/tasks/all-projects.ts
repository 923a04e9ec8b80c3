import { existsSync } from 'node:fs';
import { messageOf } from '../../machines/message-of.ts';
import type { CommandContext } from '../client/command-context.ts';
import { connect } from '../client/connect.ts';
import { findProject } from '../config/places/project.ts';
import { hubFolderOf } from '../hub/hub-place.ts';
import { type KnownProject, knownProjects } from '../hub/known-projects.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { type ListedTask, renderList } from '../output/render/render-list.ts';
import { fetchTasks, type TaskFilter } from './fetch-tasks.ts';
import { compareBy, type ListArgs, limitOf, requireStatus } from './look-commands.ts';

type Shown = Pick<CommandContext, 'env' | 'io' | 'json'>;

/** From its server, or from its files where none runs; with the configuration of that server. */
const tasksOf = async (
  { slug, root, stateDir, config }: KnownProject,
  { env: given, io }: Shown,
  filter: TaskFilter,
): Promise<readonly ListedTask[]> => {
  const env = { ...given, AGENT_STATE_DIR: stateDir, AGENT_SERVER_CONFIG: config ?? '' };
  const project = findProject(root, root, env);
  const connection = connect({ project, config: undefined, start: false, io, env });
  const { tasks } = await fetchTasks(await connection.files(), io, filter, null);
  return tasks.map((task) => ({ ...task, project: slug }));
};

/**
 * Prints the tasks of every project that the hub knows. Exit code 1 when one of them cannot be read.
 * @throws UsageError
 */
export const printAllProjects = async (context: Shown, args: ListArgs): Promise<number> => {
  const { env, io, json } = context;
  const { status, role, label, sort = 'created' } = args;
  const limit = limitOf(args, io);
  const filter = { status, role, label };
  const projects = knownProjects(hubFolderOf(env)).filter(({ root }) => existsSync(root));
  const found: ListedTask[] = [];
  let code: number = exitCodes.done;
  for (const project of projects)
    try {
      found.push(...(await tasksOf(project, context, filter)));
    } catch (error) {
      io.err(`warning: ${project.slug} cannot be read: ${messageOf(error)}`);
      code = exitCodes.failed;
    }
  if (found.length === 0) requireStatus(status);
  const sorted = found.toSorted(compareBy(sort));
  const shown = limit === null ? sorted : sorted.slice(-limit);
  if (json) io.json(shown);
  else if (shown.length > 0) io.out(renderList(shown, Date.now(), io.width));
  else
    io.err(
      projects.length === 0
        ? 'no project is known yet: each is, once its server was started'
        : `no tasks in ${projects.map(({ slug }) => slug).join(', ')}`,
    );
  if (!json && shown.length < found.length)
    io.err(`${found.length - shown.length} more; see: agent list --all-projects --all`);
  return code;
};
