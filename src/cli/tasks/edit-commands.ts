import type { TaskView } from '../../actors/journal/task-view.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { hasTerminal } from '../output/editor.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { UsageError } from '../words/usage-error.ts';
import { editText, splitText, textFrom } from './read-description.ts';

export interface EditArgs {
  readonly task_id: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly file: string | undefined;
  readonly priority: number | undefined;
  readonly label: readonly string[] | undefined;
}

type EditFields = Readonly<Record<string, unknown>>;

const fieldsOf = (
  { title, description, file, priority, label }: EditArgs,
  env: NodeJS.ProcessEnv,
) => {
  const text =
    description === undefined && file === undefined
      ? null
      : textFrom({ given: description, file }, env);
  return {
    ...(title === undefined ? {} : { title }),
    ...(text === null ? {} : { description: text }),
    ...(priority === undefined ? {} : { priority }),
    // `--label ''` removes all.
    ...(label === undefined ? {} : { labels: label.filter((each) => each !== '') }),
  };
};

/** A description that begins with the title is shown once. */
const fieldsInEditor = ({ title, description }: TaskView, env: NodeJS.ProcessEnv): EditFields => {
  const isOneText = splitText(description).title === title;
  const text = editText(isOneText ? description : `${title}\n\n${description}`, env);
  const edited = splitText(text);
  return {
    title: edited.title,
    description: isOneText || edited.rest === '' ? text : edited.rest,
  };
};

/** Without a flag, opens an editor. */
export const editTask = async (context: CommandContext, args: EditArgs): Promise<number> => {
  const { connection, io, env, json } = context;
  const given: EditFields = fieldsOf(args, env);
  const client = await connection.files();
  const isGiven = Object.keys(given).length > 0;
  if (!isGiven && !hasTerminal())
    throw new UsageError(
      `edit needs a change: agent edit ${args.task_id} --title <text>; see: agent edit --help`,
    );
  const fields = isGiven ? given : fieldsInEditor(await readTask(client, args.task_id), env);
  const task = await callForTask(client, 'edit', { task_id: args.task_id, ...fields });
  if (json) io.json(task);
  else io.out(`${task.task_id} edited`);
  return exitCodes.done;
};

export const deleteTask = async (
  { connection, io, json }: CommandContext,
  taskId: string,
): Promise<number> => {
  const client = await connection.files();
  const task = await callForTask(client, 'delete', { task_id: taskId });
  if (json) io.json(task);
  else io.out(`${task.task_id} deleted`);
  return exitCodes.done;
};
