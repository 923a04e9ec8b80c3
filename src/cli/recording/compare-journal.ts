import type { RecordedEntry, Recording } from '../../actors/journal/recording.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { CommandContext } from '../client/command-context.ts';

/** How the file agrees with the journal of the project in which the command runs. */
export interface Comparison {
  readonly note: string;
  /** How far the file is the same journal; `none`: it was not compared. */
  readonly same: 'whole' | 'beginning' | 'none';
  readonly problem: string | null;
}

const compared = (same: Comparison['same'], note: string): Comparison => ({
  ...{ note, same, problem: null },
});
const differs = (problem: string): Comparison => ({ note: '', same: 'none', problem });

const recordedEntriesIn = (answer: unknown): readonly RecordedEntry[] =>
  (answer as { readonly entries: readonly RecordedEntry[] }).entries;

/** @throws UsageError, CallError, StoreError */
const compareWithJournal = async (
  { connection, project }: CommandContext,
  { task: { task_id }, head }: Recording,
): Promise<Comparison> => {
  const client = await connection.files();
  const read = async (after_seq: number) =>
    recordedEntriesIn(await client.call('history', { task_id, after_seq, limit: 2, kept: true }));
  const where = `the journal of ${project.root}`;
  const [first] = await read(0);
  if (first === undefined)
    return head === null
      ? compared('whole', `${where} has no entries of ${task_id} either`)
      : compared('none', `${where} has no entries of ${task_id}, so it was not compared`);
  const after = (from: RecordedEntry): string =>
    `, and later ones, from ${new Date(from.at).toISOString()} on`;
  if (head === null)
    return compared('beginning', `${where} has entries that the file has not${after(first)}`);
  const [last, later] = await read(head.seq - 1);
  if (last?.seq !== head.seq || last.hash !== head.hash)
    return differs(
      `${where} has no such entry ${head.seq}: the file was altered, or is of another copy of the project`,
    );
  const same = `${where} has the same entry ${head.seq}`;
  if (later === undefined) return compared('whole', `${same}, its last one`);
  return compared('beginning', `${same}${after(later)}`);
};

/** Says why when there is nothing to compare with. */
export const compareIfPossible = async (
  context: CommandContext,
  recording: Recording,
): Promise<Comparison> => {
  try {
    return await compareWithJournal(context, recording);
  } catch (error) {
    return compared('none', `not compared with the journal of a project: ${messageOf(error)}`);
  }
};
