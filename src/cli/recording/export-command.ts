import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { requireId } from '../../actors/engine/queries/task-id.ts';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import type { Recording } from '../../actors/journal/replay/recording.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { bytesText } from '../../machines/bytes.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { redactorFor } from '../client/redactor.ts';
import { readTask } from '../client/task-answers.ts';
import { loadConfig } from '../config/config.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { fileProblem } from '../output/file-problem.ts';
import { UsageError } from '../words/usage-error.ts';
import { isWhole, recordTask } from './record-task.ts';
import { readRecordingPage, recordedChanges, renderRecording } from './recording-document.ts';

export interface ExportArgs {
  readonly task_id: string;
  readonly output: string | undefined;
  readonly force: boolean;
  readonly config: string | undefined;
}

/** @throws UsageError before anything is read */
const checkPlace = (file: string, force: boolean): void => {
  if (!existsSync(dirname(file)))
    throw new UsageError(`the folder ${dirname(file)} does not exist; create it, or name another`);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isFile()) throw new UsageError(`${file} is not a file; name another with -o`);
  if (!force) throw new UsageError(`${file} exists; --force replaces it, -o names another`);
};

const write = async (file: string, document: string): Promise<void> => {
  try {
    await writeFileAtomically(file, document);
  } catch (error) {
    throw new UsageError(`${file} cannot be written: ${fileProblem(error)}`);
  }
};

const record = async (
  context: CommandContext,
  { config }: ExportArgs,
  task: TaskView,
): Promise<Recording> => {
  const client = await context.connection.files();
  return recordTask({
    task,
    changes: await recordedChanges(context, client, config, requireId(task.task_id)),
    project: basename(context.project.root),
    readHistory: (page) => client.call('history', page),
    redact: redactorFor(
      context,
      loadConfig({ config, project: context.project }, context.env).config,
    ),
  });
};

/** Writes one file that shows the task in a browser without a server, and proves its journal. */
export const exportTask = async (context: CommandContext, args: ExportArgs): Promise<number> => {
  const { connection, io, json, cwd } = context;
  const task = await readTask(await connection.files(), requireId(args.task_id));
  const name = args.output ?? `${task.task_id}.html`;
  const file = resolve(cwd, name);
  if (name !== '-') checkPlace(file, args.force);
  const recording = await record(context, args, task);
  const document = renderRecording(recording, readRecordingPage());
  if (!isWhole(recording))
    io.err('note: a part was too large, held a secret or was removed; the file says which');
  if (name === '-') {
    io.out(document);
    return exitCodes.done;
  }
  await write(file, `${document}\n`);
  const entries = recording.head?.entries ?? 0;
  const bytes = Buffer.byteLength(document) + 1;
  if (json) io.json({ task_id: task.task_id, file, bytes, entries });
  else io.out(`wrote ${name} (${bytesText(bytes)}, ${plural(entries, 'entry', 'entries')})`);
  return exitCodes.done;
};
