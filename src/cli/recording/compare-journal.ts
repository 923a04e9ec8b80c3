import type { RecordedEntry, Recording } from '../../actors/journal/recording.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { CommandContext } from '../client/command-context.ts';

/** How the file agrees with the journal of the project in which the command runs. */
export interface Comparison {
  readonly note: string;
  readonly problem: string | null;
}

const compared = (note: string): Comparison => ({ note, problem: null });

const recordedEntriesIn = (answer: unknown): readonly RecordedEntry[] =>
  (answer as { readonly entries: readonly RecordedEntry[] }).entries;

/** @throws UsageError, CallError, StoreError */
const compareWithJournal = async (
  { connection, project }: CommandContext,
  { task: { task_id }, head }: Recording,
): Promise<Comparison> => {
  if (head === null) return compared('the task has no journal');
  const client = await connection.files();
  const read = async (after_seq: number) =>
    recordedEntriesIn(await client.call('history', { task_id, after_seq, limit: 2, kept: true }));
  const [last, later] = await read(head.seq - 1);
  const where = `the journal of ${project.root}`;
  if (last?.seq === head.seq && last.hash === head.hash)
    return compared(
      `${where} has the same entry ${head.seq}${later === undefined ? ', its last one' : ', and later ones'}`,
    );
  if (last === undefined && (await read(0)).length === 0)
    return compared(`${where} has no entries of ${task_id}, so it was not compared`);
  return {
    note: '',
    problem: `${where} has no such entry ${head.seq}: the file was altered, or is of another copy of the project`,
  };
};

/** Says why when there is nothing to compare with. */
export const compareIfPossible = async (
  context: CommandContext,
  recording: Recording,
): Promise<Comparison> => {
  try {
    return await compareWithJournal(context, recording);
  } catch (error) {
    return compared(`not compared with the journal of a project: ${messageOf(error)}`);
  }
};
