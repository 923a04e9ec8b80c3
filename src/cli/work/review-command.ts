import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { plural } from '../../machines/plural.ts';
import type { ReviewVerdict } from '../../machines/review.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { inWordsOfCommand } from '../words/refused-params.ts';
import { UsageError } from '../words/usage-error.ts';

export interface ReviewArgs {
  readonly task_id: string;
  readonly attempt: number | undefined;
  /** Places and texts in turn: `src/a.js:12`, `Use const`. */
  readonly comment: readonly string[] | undefined;
  readonly 'request-changes': boolean;
  readonly approve: boolean;
}

/** `src/a.js`, `src/a.js:12` or `src/a.js:12-14`. */
const placePattern = /^(.+?)(?::(\d+)(?:-(\d+))?)?$/s;

const commentsIn = (words: readonly string[]) =>
  Array.from({ length: Math.ceil(words.length / 2) }, (_, at) => {
    const [place = '', text = ''] = words.slice(2 * at, 2 * at + 2);
    const [, path = '', line, end] = placePattern.exec(place) ?? [];
    if (path === '' || text.trim() === '')
      throw new UsageError(
        `--comment needs a place and a text, such as --comment src/a.js:12 "Use const"`,
      );
    return {
      path,
      text,
      line: line === undefined ? undefined : Number(line),
      end_line: end === undefined ? undefined : Number(end),
    };
  });

const askedVerdict = ({
  'request-changes': asksForChanges,
  approve,
}: ReviewArgs): ReviewVerdict => {
  if (asksForChanges) return 'request_changes';
  return approve ? 'approve' : 'comment';
};

const reviewLines = (
  { task_id, status }: TaskView,
  verdict: ReviewVerdict,
  comments: number,
): readonly string[] => {
  const given = `${task_id}: ${plural(comments, 'comment')}`;
  if (verdict === 'approve')
    return [
      status === 'complete'
        ? `${given}, approved; take it with: agent merge ${task_id}`
        : `${given}, approved; the task is ${status}, so a merge needs --force: agent merge ${task_id} --force`,
    ];
  if (verdict === 'comment') return [`${given}; they are given to the next attempt`];
  return [
    `${given}, sent back; the next attempt goes on with the same branch`,
    `see: agent logs -f ${task_id}, agent diff ${task_id}`,
  ];
};

const wordOf = (path: string): string => (path.startsWith('comments.') ? '--comment' : path);

/** Keeps comments on the work of a task, and sends it back when they ask for changes. */
export const reviewWork = async (context: CommandContext, args: ReviewArgs): Promise<number> => {
  const { io, json, connection } = context;
  const taskId = requireId(args.task_id);
  const verdict = askedVerdict(args);
  const comments = commentsIn(args.comment ?? []);
  const task = await callForTask(await connection.server(), 'review', {
    task_id: taskId,
    verdict,
    comments,
    attempt: args.attempt,
  }).catch((error) => {
    throw inWordsOfCommand(error, wordOf);
  });
  if (json) io.json(task);
  else for (const line of reviewLines(task, verdict, comments.length)) io.out(line);
  return exitCodes.done;
};
