import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { parseTaskId, type Role, roles, type TaskId } from '../../machines/task.ts';
import { CallError } from '../client/client.ts';
import { serverIn } from '../client/find-server.ts';
import { createHttpClient } from '../client/http-client.ts';
import { readTask } from '../client/task-answers.ts';
import { stateFiles, stateFolders } from '../config/places/project.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { renderTask } from '../output/render/render-task.ts';
import { readServerFile } from '../server/server-file.ts';

interface KnownTask {
  readonly task: TaskView;
  readonly project: string | null;
}

const stateFoldersOf = (env: NodeJS.ProcessEnv): readonly string[] => {
  const { own, shared } = stateFolders(env);
  try {
    return [...own, ...readdirSync(shared).map((name) => join(shared, name))];
  } catch {
    return own;
  }
};

const askForTask = async (taskId: string, env: NodeJS.ProcessEnv): Promise<KnownTask | null> => {
  for (const stateDir of stateFoldersOf(env)) {
    const address = await serverIn(stateDir).catch(() => null);
    if (address === null) continue;
    try {
      const task = await readTask(createHttpClient(address), taskId);
      return { task, project: readServerFile(stateFiles(stateDir).server)?.project ?? null };
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
    }
  }
  return null;
};

/** A window that the desktop opened closes when the program ends. */
const waitForReader = async (): Promise<void> => {
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) return;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  await lines.question('\npress Enter to close ');
  lines.close();
};

/**
 * `agent open-url -- <url>`, which the desktop runs for an `agent://` link. It runs before any
 * parser of flags, shows the task and never starts anything. Exit code 2 for a bad link, 3 when no
 * running server knows the task.
 */
export const openUrl = async (
  words: readonly string[],
  io: Io,
  env: NodeJS.ProcessEnv,
): Promise<number> => {
  const [dashes, url, ...more] = words;
  const link =
    dashes === '--' && url !== undefined && more.length === 0 ? parseAgentUrl(url) : null;
  if (link === null) {
    io.err('agent: not a valid link; valid are agent://task/<id> and agent://run/<role>/<id>');
    return exitCodes.usage;
  }
  const known = await askForTask(link.taskId, env);
  if (known === null) {
    io.err(
      `agent: no running server knows task ${link.taskId}; start one in its project: agent server start`,
    );
    await waitForReader();
    return exitCodes.notFound;
  }
  const { task, project } = known;
  io.out(renderTask(task));
  const where = project === null ? '' : ` --project ${JSON.stringify(project)}`;
  const how = link.kind === 'run' ? `; to run it: agent ${link.role} ${link.taskId}${where}` : '';
  io.out(`\nopened by a link; nothing was started${how}`);
  await waitForReader();
  return exitCodes.done;
};

/** A link never starts work. */
type AgentUrl =
  | { readonly kind: 'task'; readonly taskId: TaskId }
  | { readonly kind: 'run'; readonly role: Role; readonly taskId: TaskId };

const maxLength = 256;
const allowed = /^[A-Za-z0-9_/.:-]+$/;

/**
 * Exactly `agent://task/<id>` or `agent://run/<role>/<id>`, else null. It matches text instead of
 * using URL, which repairs case, dots, white space and user info, and so would accept more.
 */
export const parseAgentUrl = (text: string): AgentUrl | null => {
  if (text.length > maxLength || !allowed.test(text)) return null;
  const [scheme, empty, kind, ...rest] = text.split('/');
  const id = rest.pop();
  const taskId = id === undefined ? null : parseTaskId(id);
  if (scheme !== 'agent:' || empty !== '' || taskId === null) return null;
  if (kind === 'task') return rest.length === 0 ? { kind, taskId } : null;
  const role = roles.find((known) => known === rest[0]);
  return kind === 'run' && role !== undefined && rest.length === 1 ? { kind, role, taskId } : null;
};
