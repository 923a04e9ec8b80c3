import { link, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { StartConflict } from '../../machines/agent/agent-context.ts';
import { failingLines } from '../../machines/last-lines.ts';
import { describeFailure } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import { commentPlace, type ReviewComment } from '../../machines/review.ts';
import type { AttemptOutcome, Failure, Role, TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { removeLeftovers, writeFileAtomically } from '../files/atomic-write.ts';
import { isRealFolder, makeRealFolder, syncNames } from '../files/real-folder.ts';

import { readRegularAsync } from '../files/regular-file.ts';
import { createOutputFile, type OutputFile } from '../process/output-file.ts';
import type { SavedWork } from '../workspace/port.ts';

/** A code block of Markdown whose fence is longer than any in the text. */
export const fencedBlock = (text: string, kind: 'diff' | 'text'): string => {
  let longest = 2;
  for (const [ticks] of text.matchAll(/`+/g)) longest = Math.max(longest, ticks.length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${kind}\n${text}\n${fence}`;
};

export type AttemptEnd =
  | { readonly status: 'complete' }
  | { readonly status: 'failed'; readonly failure: Failure }
  | { readonly status: 'cancelled'; readonly reason: string | null };

/** Empty for a complete attempt. */
export const describeEnd = (end: AttemptEnd): string => {
  if (end.status === 'complete') return '';
  if (end.status === 'failed') return `failed: ${describeFailure(end.failure)}`;
  return end.reason === null ? 'was cancelled' : `was cancelled: ${end.reason}`;
};

interface AttemptReport {
  readonly task: TrackedTask;
  readonly attempt: number;
  readonly role: Role;
  readonly model: string;
  readonly disclaimer: string | null;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly outcome: AttemptOutcome | null;
  /** The comments that the attempt was to answer. */
  readonly comments: readonly ReviewComment[];
  readonly end: AttemptEnd;
  readonly workLog: readonly string[];
  readonly work: SavedWork | null;
  /** Names of changes that are on no branch; empty where the saved work names them. */
  readonly notSaved: readonly string[];
  /** Messages of people that no agent read. */
  readonly unread: readonly string[];
  /** Work that the attempt builds on and did not have. */
  readonly conflicts: readonly StartConflict[];
}

export interface Results {
  /**
   * Writes the task folder. An earlier attempt's files move to `attempts/<n>/`; a later attempt's
   * stay as they are.
   */
  write(report: AttemptReport): Promise<void>;
  /** Says what became of the changes of an attempt, in place of how to take them. */
  noteMerge(taskId: TaskId, attempt: number, words: string, at: number): Promise<void>;
  /** The results file as it goes into the prompts of dependent tasks, or null. */
  read(taskId: TaskId): Promise<string | null>;
  /**
   * Keeps the output of a command if it is more than `fromBytes`. `name` is unique in the attempt.
   */
  openLog(taskId: TaskId, attempt: number, name: string, fromBytes: number): OutputFile;
  /**
   * The folder of a task's logs, for its commands to read; null when it is missing or no real
   * folder.
   */
  logsOf(taskId: TaskId): string | null;
}

const resultFiles = ['00-metadata.json', '10-plan.md', '20-work-log.md', '30-results.md'] as const;
const metadataSchema = z.looseObject({ attempt: z.int().positive() });
const isoTime = (at: number): string => new Date(at).toISOString();

const metadataText = ({
  task,
  attempt,
  role,
  model,
  startedAt,
  endedAt,
  outcome,
  end,
  work,
}: AttemptReport): string =>
  `${JSON.stringify(
    {
      task_id: task.id,
      title: task.title,
      role,
      attempt,
      status: end.status,
      model,
      started_at: isoTime(startedAt),
      ended_at: isoTime(endedAt),
      dependencies: task.dependencies,
      ...(end.status === 'failed'
        ? { error: { code: end.failure.code, message: end.failure.message } }
        : {}),
      ...(end.status === 'cancelled' && end.reason !== null ? { reason: end.reason } : {}),
      work: work ?? undefined,
      usage: outcome?.usage ?? null,
    },
    null,
    2,
  )}\n`;

const planText = ({ task, role }: AttemptReport): string =>
  `# Plan\n\n- Task: ${task.id}, ${task.title}\n- Role: ${role}\n- Builds on: ${task.dependencies.join(', ') || 'nothing'}\n\n## Asked for\n\n${task.description || task.title}\n`;

const workLogText = ({ task, attempt, workLog: lines }: AttemptReport): string =>
  `# Work log of ${task.id}, attempt ${attempt}\n\n${lines.map((line) => `- ${line}`).join('\n') || 'No tool was called.'}\n`;

export const describeWork = ({
  branch,
  files,
  insertions,
  deletions,
}: Omit<SavedWork, 'notes'>): string =>
  `${plural(files, 'file')} changed, ${plural(insertions, 'insertion')}, ${plural(deletions, 'deletion')}, on the branch ${branch}`;

const changesText = (taskId: TaskId, attempt: number, work: SavedWork, end: AttemptEnd): string => {
  const ways =
    end.status === 'complete'
      ? `- Take them: \`agent merge ${taskId}\`\n`
      : `- Try again: \`agent retry ${taskId}\`\n- Take them although the attempt is not complete: \`agent merge ${taskId} --attempt ${attempt} --force\`\n`;
  const notes = work.notes.map((note) => `- ${note}\n`).join('');
  return `## Changes\n\n${describeWork(work)}.\n\n${notes}- See them: \`agent diff ${taskId}\`\n${ways}`;
};

/** Says what became of the changes in place of how to take them. What an agent wrote stands before. */
const withMerge = (text: string, sentence: string): string => {
  const at = text.lastIndexOf('\n## Changes\n');
  if (at === -1) return text;
  const changes = text.slice(at).replace(/^- (?:Take them|Merged|Undone).*$/m, () => sentence);
  return text.slice(0, at) + changes;
};

const notSavedText = (notes: readonly string[]): string =>
  `## Changes\n\nNo branch has changes of it.\n\n${notes.map((note) => `- ${note}\n`).join('')}`;

const asQuote = (text: string): string => `> ${text.trim().replaceAll('\n', '\n> ')}`;

const answerList = ({ comments, outcome }: AttemptReport): string => {
  const answers = (outcome?.status === 'done' ? outcome.answers : undefined) ?? [];
  const parts = comments.map((comment) => {
    const answer = answers.find((each) => each.comment === comment.id)?.answer;
    return `${comment.id}. ${commentPlace(comment)}\n\n${asQuote(comment.text)}\n\n${answer ?? '(no answer)'}\n`;
  });
  return `## Answers to the review\n\n${parts.join('\n')}`;
};

const conflictList = (conflicts: readonly StartConflict[]): string => {
  const lines = conflicts.map(
    ({ taskId, branch, files }) =>
      `- ${taskId}, on the branch ${branch}: ${files.join(', ') || 'it could not be merged'}\n`,
  );
  return `## Conflicts\n\nThe attempt began without work that it builds on, since it conflicts with the project's branch.\n\n${lines.join('')}`;
};

/** The end of the output of the command that failed, as a block that no line of it can close. */
const outputOf = (end: AttemptEnd): string => {
  const output = end.status === 'failed' ? end.failure.facts['output'] : null;
  if (typeof output !== 'string' || output === '') return '';
  return `\n\nOf its output, what failed first and the end:\n\n${fencedBlock(failingLines(output), 'text')}`;
};

const unreadList = (unread: readonly string[]): string =>
  `## Not read\n\nA person said this, and no agent read it before the end.\n\n${unread.map(asQuote).join('\n\n')}\n`;

const logsTitle = '## Logs\n\nThe whole output of commands that printed much.\n';
const logList = (logs: readonly string[]): string =>
  `${logsTitle}\n${logs.map((name) => `- logs/${name}`).join('\n')}\n`;

/** Nobody but the task's own commands can read the logs. */
const withoutLogs = (text: string | null): string | null =>
  text?.split(`\n${logsTitle}`, 1)[0] ?? null;

const resultsText = (report: AttemptReport, logs: readonly string[]): string => {
  const { task, attempt, role, model, disclaimer, endedAt, outcome, end, work, conflicts } = report;
  const done = outcome?.status === 'done' ? outcome : null;
  const body =
    end.status === 'complete'
      ? (done?.summary ?? '')
      : `The attempt ${describeEnd(end)}${outputOf(end)}`;
  const artifacts =
    done === null || done.artifacts.length === 0
      ? ''
      : `\n## Artifacts\n\n${done.artifacts.map((path) => `- ${path}`).join('\n')}\n`;
  return [
    `# ${task.title}\n`,
    `- Task: ${task.id}\n- Role: ${role}\n- Attempt: ${attempt}\n- Status: ${end.status}\n- Model: ${model}\n- Ended: ${isoTime(endedAt)}\n`,
    ...(disclaimer === null ? [] : [`> ${disclaimer}\n`]),
    `## Results\n\n${body}\n${artifacts}`,
    ...(report.comments.length === 0 ? [] : [answerList(report)]),
    ...(work === null ? [] : [changesText(task.id, attempt, work, end)]),
    ...(report.notSaved.length === 0 ? [] : [notSavedText(report.notSaved)]),
    ...(conflicts.length === 0 ? [] : [conflictList(conflicts)]),
    ...(report.unread.length === 0 ? [] : [unreadList(report.unread)]),
    ...(logs.length === 0 ? [] : [logList(logs)]),
  ].join('\n');
};

const resultBytesAtMost = 16 * 1024 * 1024;
const readResultText = (path: string): Promise<string | null> =>
  readRegularAsync(path, resultBytesAtMost).catch(() => null);

const attemptOnDisk = async (folder: string): Promise<number> => {
  const text = await readResultText(join(folder, '00-metadata.json'));
  try {
    return metadataSchema.parse(JSON.parse(text ?? '')).attempt;
  } catch {
    return 0;
  }
};

/**
 * Adds a second name and syncs it before the new attempt takes the first one: no power cut takes
 * both.
 */
const keepEarlier = async (folder: string, attempt: number): Promise<void> => {
  const earlier = join(folder, 'attempts', String(attempt));
  makeRealFolder(folder, earlier);
  for (const file of resultFiles)
    await link(join(folder, file), join(earlier, file)).catch(() => {});
  syncNames(earlier);
};

/**
 * The results files of a project, below `.beads/tasks/`. `redact` removes secrets from every text.
 */
export const createResults = (projectRoot: string, redact: (text: string) => string): Results => {
  const folderOf = (taskId: TaskId): string =>
    join(projectRoot, '.beads', 'tasks', `task-${taskId}`);
  const logFolder = (taskId: TaskId): string => join(folderOf(taskId), 'logs');
  const prefixOf = (attempt: number): string => `${attempt}-`;

  const leadsElsewhere = (folder: string): boolean => {
    try {
      return !isRealFolder(projectRoot, folder);
    } catch {
      return true;
    }
  };

  const logNames = async (taskId: TaskId): Promise<readonly string[]> =>
    isRealFolder(projectRoot, logFolder(taskId)) ? readdir(logFolder(taskId)) : [];

  const logsIn = async (taskId: TaskId, attempt: number): Promise<readonly string[]> =>
    (await logNames(taskId))
      .filter((name) => name.startsWith(prefixOf(attempt)))
      .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));

  const dropLogs = async (taskId: TaskId, upTo: number): Promise<void> => {
    const old = (await logNames(taskId)).filter(
      (name) => /^\d+-/.test(name) && Number.parseInt(name, 10) <= upTo,
    );
    for (const name of old) await rm(join(logFolder(taskId), name), { force: true });
  };

  return {
    logsOf: (taskId) => {
      const folder = logFolder(taskId);
      return leadsElsewhere(folder) ? null : folder;
    },
    openLog: (taskId, attempt, name, fromBytes) => {
      const folder = logFolder(taskId);
      const prefix = prefixOf(attempt);
      const makeFolder = (): void => makeRealFolder(projectRoot, folder);
      return createOutputFile({
        folder,
        makeFolder,
        prefix,
        name: `${prefix}${name}.log`,
        redact,
        fromBytes,
      });
    },
    read: async (taskId) => {
      const folder = folderOf(taskId);
      if (leadsElsewhere(folder)) return null;
      return withoutLogs(await readResultText(join(folder, '30-results.md')));
    },
    noteMerge: async (taskId, attempt, words, at) => {
      const folder = folderOf(taskId);
      if (leadsElsewhere(folder) || (await attemptOnDisk(folder)) !== attempt) return;
      const file = join(folder, '30-results.md');
      const text = await readResultText(file);
      if (text === null) return;
      const sentence = `- ${words.charAt(0).toUpperCase()}${words.slice(1)}; ${isoTime(at)}`;
      const after = withMerge(text, redact(sentence));
      if (after !== text) await writeFileAtomically(file, after);
    },
    write: async (report) => {
      const folder = folderOf(report.task.id);
      makeRealFolder(projectRoot, folder);
      removeLeftovers(folder);
      const onDisk = await attemptOnDisk(folder);
      if (onDisk > report.attempt) return;
      if (onDisk > 0 && onDisk < report.attempt) await keepEarlier(folder, onDisk);
      await dropLogs(report.task.id, report.attempt - 2);
      const logs = await logsIn(report.task.id, report.attempt);
      const texts = [
        metadataText(report),
        planText(report),
        workLogText(report),
        resultsText(report, logs),
      ];
      for (const [index, file] of resultFiles.entries())
        await writeFileAtomically(join(folder, file), redact(texts[index] ?? ''));
    },
  };
};
