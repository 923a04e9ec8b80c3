import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { CallError } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { renderTask } from '../output/render/render-task.ts';
import { stateWords } from '../words/state-words.ts';
import { askPerson, type PersonAnswer } from './ask-person.ts';

export interface RespondArgs {
  readonly task_id: string;
  readonly answer: string | undefined;
  readonly attempt: number | undefined;
  readonly allow: boolean | undefined;
  readonly deny: boolean | undefined;
}

const decisionOf = ({ allow, deny }: RespondArgs): 'allow' | 'deny' | undefined => {
  if (allow === true) return 'allow';
  return deny === true ? 'deny' : undefined;
};

/** Shows the question, and asks on a terminal. @returns null without an answer */
const askFor = async (
  io: Io,
  json: boolean,
  task: TaskView,
  awaiting: NonNullable<TaskView['awaiting']>,
): Promise<PersonAnswer | null> => {
  const message =
    awaiting.kind === 'approval'
      ? 'add --allow or --deny'
      : `answer with: agent respond ${task.task_id} "<answer>"`;
  if (json) io.json({ ...awaiting, error: { code: 'usage', message } });
  else io.out(renderTask(task, io.width, []));
  const given = json || io.ask === null ? null : await askPerson(io.ask, awaiting.kind);
  if (given === null) io.err(`agent: ${message}`);
  return given;
};

/** Without an answer, shows the question. Exit code 4 when there is none. */
export const respond = async (
  { connection, io, json }: CommandContext,
  args: RespondArgs,
): Promise<number> => {
  const taskId = requireId(args.task_id);
  const decision = decisionOf(args);
  const client = await connection.server();
  const task = await readTask(client, taskId);
  if (task.awaiting === undefined)
    throw new CallError(
      'event_not_allowed',
      `${taskId} is ${stateWords(task, Date.now())}; it has no open question`,
      {
        task_id: taskId,
        state: task.phase,
      },
    );
  const given =
    args.answer === undefined && decision === undefined
      ? await askFor(io, json, task, task.awaiting)
      : {
          text: args.answer,
          decision,
        };
  if (given === null) return exitCodes.usage;
  const after = await callForTask(client, 'respond', {
    task_id: taskId,
    attempt: args.attempt ?? task.attempt,
    input_id: task.awaiting.input_id,
    ...given,
  });
  if (json) io.json(after);
  else io.out(`${taskId} ${stateWords(after, Date.now())}`);
  return exitCodes.done;
};
