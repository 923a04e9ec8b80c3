import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Changes } from '../../actors/workspace/port.ts';
import { textIn } from '../../machines/json.ts';
import { pathOnLine } from '../../machines/patch-name.ts';
import type { TaskId } from '../../machines/task.ts';
import { CallError, type Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { loadConfig } from '../config/config.ts';
import { workspaceFor } from '../config/workspace.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine, showControls } from '../output/safe-text.ts';
import { joined, type Style, styled, type Text } from '../output/styled.ts';
import { history } from '../tasks/logs.ts';

/**
 * The changes of an attempt, the latest by default, as the running server answers; null when it has
 * none. It knows secrets that this shell does not have, and replaces them.
 */
export const askForWork = async (
  client: Client,
  taskId: TaskId,
  attempt?: number,
): Promise<Changes | null> => {
  try {
    return (await client.call('diff', {
      task_id: taskId,
      attempt,
    })) as Changes;
  } catch (error) {
    if (error instanceof CallError && error.code === 'event_not_allowed') return null;
    throw error;
  }
};

type Comment = NonNullable<TaskView['review']>['comments'][number];

const lastLineOf = ({ line, end_line }: Comment): number => end_line ?? line ?? 0;

const placeText = ({ path, line, end_line }: Comment): string =>
  `${path}${line === undefined ? '' : `:${line}`}${end_line === undefined ? '' : `-${end_line}`}`;

const linesOf = (comment: Comment): readonly string[] => {
  const { id, text, answer, answered_by, open } = comment;
  const state = open ? 'open' : answered_by === undefined ? 'closed' : `attempt ${answered_by}`;
  return [
    `# comment ${id} on ${placeText(comment)} (${state})`,
    ...text.split('\n').map((line) => `#   ${line}`),
    ...(answer === undefined ? [] : answer.split('\n').map((line) => `#   > ${line}`)),
  ];
};

/**
 * The patch with each comment below its last line, and those on lines that the patch does not show
 * above it. It is for people: `git apply` does not take it.
 */
export const withComments = (patch: string, comments: readonly Comment[]): string => {
  const left = new Set(comments);
  const take = (path: string, line: number): readonly string[] =>
    comments
      .filter(
        (comment) => left.has(comment) && comment.path === path && lastLineOf(comment) === line,
      )
      .flatMap((comment) => {
        left.delete(comment);
        return linesOf(comment);
      });
  let path = '';
  let next = 0;
  let inHunk = false;
  const shown = patch.split('\n').flatMap((line) => {
    const [, first] = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line) ?? [];
    if (first !== undefined) {
      inHunk = true;
      next = Number(first);
      return [line];
    }
    if (line.startsWith('diff --git ')) inHunk = false;
    if (!inHunk) {
      if (!line.startsWith('+++ ')) return [line];
      path = pathOnLine(line) ?? '';
      return [line, ...take(path, 0)];
    }
    if (!line.startsWith('+') && !line.startsWith(' ')) return [line];
    next += 1;
    return [line, ...take(path, next - 1)];
  });
  const above = [...left].flatMap(linesOf);
  return [...above, ...(above.length === 0 ? [] : ['']), ...shown].join('\n');
};

const marks: Readonly<Record<string, Style>> = { '+': 'green', '-': 'red', '@': 'cyan' };

/** The colours of git; notes of ours begin with `#`. */
export const stylePatch = (patch: string): Text => {
  let inHunk = false;
  const lines = patch.split('\n').map((line): Text => {
    if (line.startsWith('@@')) inHunk = true;
    if (line.startsWith('diff --git ')) inHunk = false;
    if (line === '') return line;
    if (line.startsWith('#')) return [styled('yellow', line)];
    if (!inHunk) return [styled('bold', line)];
    const style = marks[line[0] ?? ''];
    return style === undefined ? line : [styled(style, line)];
  });
  return joined(lines, '\n');
};

export interface WorkArgs {
  readonly task_id: string;
  readonly attempt: number | undefined;
  readonly config: string | undefined;
}

const taskOf = async ({ connection }: CommandContext, taskId: TaskId): Promise<TaskView> =>
  readTask(await connection.files(), taskId);

export const openWorkspace = ({ project, env }: CommandContext, config: string | undefined) =>
  workspaceFor(loadConfig({ config, project }, env), project, env);

const guardedLines = (guarded: readonly string[]): readonly string[] =>
  guarded.length === 0
    ? []
    : [
        '# runs on your machine: other programs run or trust these files, and a merge puts them into the project',
        ...guarded.map((path) => `#   ${/^[\w./@+-]+$/.test(path) ? path : JSON.stringify(path)}`),
      ];

/** `git apply` skips these lines. */
const diffHeader = (guarded: readonly string[], notes: readonly string[]): string => {
  const lines = [...notes.map((note) => `# ${oneLine(note, 500)}`), ...guardedLines(guarded)];
  return lines.length === 0 ? '' : [...lines, '', ''].join('\n');
};

/** The patch as a terminal can show it: an invisible character may hide what a line does. */
const patchText = (patch: string): string => {
  const shown = showControls(patch);
  if (shown === patch.replaceAll('\r\n', '\n')) return shown;
  return `# characters that a terminal does not show are written as <U+001B>; a pipe and --json have the unchanged patch\n\n${shown}`;
};

/** Notes for programs that apply the unchanged patch, and for people who read it. */
const pipedNotes = (patch: string, taskId: TaskId): readonly string[] => [
  ...(showControls(patch) === patch.replaceAll('\r\n', '\n')
    ? []
    : [
        `note: the patch has characters that a terminal does not show; to see them: agent diff ${taskId} --comments`,
      ]),
  ...(patch.includes('\ufffd')
    ? [
        `note: bytes that are not UTF-8 are U+FFFD in the patch; to take them: agent merge ${taskId}`,
      ]
    : []),
];

/** A blob has 40 or 64 digits in a patch for `git apply`; a person reads seven. */
const withShortIndexes = (patch: string): string =>
  patch.replace(
    /^index ([0-9a-f]{7})[0-9a-f]{33,57}\.\.([0-9a-f]{7})[0-9a-f]{33,57}/gm,
    'index $1..$2',
  );

/** Names the merge of an attempt whose branch and record are pruned. */
const loggedMerge = async (
  { connection }: CommandContext,
  { task_id, attempt: latest }: TaskView,
  attempt = latest,
): Promise<string | null> => {
  let commit: string | null = null;
  for await (const frame of history(await connection.files(), task_id))
    if (frame.attempt === attempt) commit = textIn(frame.data, 'merge_commit') ?? commit;
  return commit;
};

const nothingToShow = (
  taskId: TaskId,
  attempt: number | undefined,
  workspace: Awaited<ReturnType<typeof openWorkspace>>,
  commit: string | null,
): CallError => {
  const what = attempt === undefined ? 'no attempt' : `no attempt ${attempt}`;
  const where =
    workspace.mode === 'shared' ? `; agents work in ${workspace.describe()}: see git diff` : '';
  const merged = commit === null ? '' : `; its work was merged: git show ${commit.slice(0, 12)}`;
  return new CallError(
    'nothing_to_show',
    `${taskId} has ${what} with a branch of its own${where}${merged}`,
    { task_id: taskId },
  );
};

/** The work of another server; null without a server. */
export const workElsewhere = async (
  { connection }: CommandContext,
  taskId: TaskId,
  attempt: number | undefined,
): Promise<Changes | null> => {
  const client = await connection.files();
  return client.live ? askForWork(client, taskId, attempt) : null;
};

export interface DiscardArgs {
  readonly task_id: string;
  readonly attempt: number | undefined;
  readonly reason: string | undefined;
}

export const discardWork = async (
  { io, json, connection }: CommandContext,
  { task_id, attempt, reason }: DiscardArgs,
): Promise<number> => {
  const taskId = requireId(task_id);
  const task = await callForTask(await connection.server(), 'discard', {
    task_id: taskId,
    attempt,
    reason,
  });
  if (json) io.json(task);
  else
    io.out(
      `${taskId} attempt ${attempt ?? task.attempt}: discarded; its branch stays until: agent prune --superseded; to have it done again: agent reopen ${taskId}`,
    );
  return exitCodes.done;
};

export interface DiffArgs extends WorkArgs {
  readonly comments: boolean | undefined;
}

/** Prints a patch for `git apply`, also while the attempt runs; on a terminal with the comments. */
export const showDiff = async (
  context: CommandContext,
  { task_id, attempt, config, comments = context.io.width !== null }: DiffArgs,
): Promise<number> => {
  const { io, json } = context;
  const taskId = requireId(task_id);
  const task = await taskOf(context, taskId);
  const workspace = await openWorkspace(context, config);
  const found =
    (await workspace.diff(taskId, attempt ?? null)) ??
    (await workElsewhere(context, taskId, attempt));
  if (found === null)
    throw nothingToShow(taskId, attempt, workspace, await loggedMerge(context, task, attempt));
  if (json) io.json({ task_id: taskId, ...found });
  else if (found.patch === '') {
    const notes = await workspace.leftOut(taskId, found.attempt);
    const what = notes.length === 0 ? 'changed nothing' : 'has no changes on a branch';
    io.err([`attempt ${found.attempt} of ${taskId} ${what}`, ...notes].join('\n'));
  } else {
    const header = diffHeader(found.guarded, await workspace.leftOut(taskId, found.attempt));
    if (io.width === null && !comments) {
      io.verbatim(header + found.patch);
      for (const note of pipedNotes(found.patch, taskId)) io.err(note);
    } else {
      const patch = patchText(found.patch.replace(/\n$/, ''));
      const said = comments ? (task.review?.comments ?? []) : [];
      const shown = io.width === null ? patch : withShortIndexes(patch);
      io.out(stylePatch(header + withComments(shown, said)));
    }
    const commit = found.attempt === task.attempt ? task.work?.merge_commit : undefined;
    if (commit !== undefined) io.err(`note: it is merged: git show ${commit.slice(0, 12)}`);
  }
  return exitCodes.done;
};
