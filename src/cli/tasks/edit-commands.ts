import type { TaskView } from '../../actors/journal/task-view.ts';
import { isRoleLabel, roleLabel } from '../../machines/role-label.ts';
import type { Client } from '../client/client.ts';
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
  readonly role: string | undefined;
}

type EditFields = Readonly<Record<string, unknown>>;

const editedFieldsOf = (
  { title, description, file, priority, label }: EditArgs,
  env: NodeJS.ProcessEnv,
) => {
  const text =
    description === undefined && file === undefined
      ? null
      : textFrom({ given: description, file }, env);
  return {
    title,
    description: text ?? undefined,
    priority,
    // `--label ''` removes all.
    labels: label === undefined ? undefined : label.filter((each) => each !== ''),
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

/** The role is a label; the other labels stay unless they are given. */
const withRole = async (
  client: Client,
  { task_id, role, label }: EditArgs,
  fields: EditFields,
): Promise<EditFields> => {
  if (role === undefined) return fields;
  const labels = label ?? (await readTask(client, task_id)).labels;
  const others = labels.filter((each) => each !== '' && !isRoleLabel(each));
  return { ...fields, labels: [...others, roleLabel(role)] };
};

/** Without a flag, opens an editor. */
export const editTask = async (context: CommandContext, args: EditArgs): Promise<number> => {
  const { connection, io, env, json } = context;
  const given: EditFields = editedFieldsOf(args, env);
  const client = await connection.files();
  const isGiven =
    Object.values(given).some((value) => value !== undefined) || args.role !== undefined;
  if (!isGiven && !hasTerminal())
    throw new UsageError(
      `edit needs a change: agent edit ${args.task_id} --title <text>; see: agent edit --help`,
    );
  const fields = isGiven
    ? await withRole(client, args, given)
    : fieldsInEditor(await readTask(client, args.task_id), env);
  const task = await callForTask(client, 'edit', { task_id: args.task_id, ...fields });
  if (json) io.json(task);
  else io.out(`${task.task_id} edited`);
  return exitCodes.done;
};
