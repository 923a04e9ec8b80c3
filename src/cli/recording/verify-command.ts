import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Proof, proveRecording } from '../../actors/journal/prove-recording.ts';
import {
  type RecordedEntry,
  type Recording,
  recordingFormat,
  recordingSchema,
  recordingVersion,
} from '../../actors/journal/recording.ts';
import { messageOf } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import { CallError } from '../client/client.ts';
import { isJson } from '../client/json.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { CommandContext } from '../tasks/commands.ts';
import { UsageError } from '../words/usage-error.ts';
import { recordingIn, renderRecording } from './recording-document.ts';
import { readRecordingPage } from './recording-page.ts';

/** Larger than any file that we write. */
const fileBytesAtMost = 100_000_000;

const readDocument = (file: string, name: string): string => {
  try {
    const bytes = readFileSync(file);
    if (bytes.length <= fileBytesAtMost) return bytes.toString();
  } catch (error) {
    throw new UsageError(`${name} cannot be read: ${messageOf(error)}`);
  }
  throw new UsageError(`${name} is larger than any exported task`);
};

/** Null when it is no JSON, or nested too deeply to be written again. */
const parsed = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text);
    JSON.stringify(value);
    return value;
  } catch {
    return null;
  }
};

const notARecording = (file: string, why: string): CallError =>
  new CallError('not_proven', `${file}: ${why}`, { file });

/** @throws CallError when the file holds no recording, or a damaged one */
const recordingOf = (document: string, file: string): Recording => {
  const text = recordingIn(document);
  if (text === null)
    throw notARecording(file, 'it holds no task that agent export wrote, or its end is missing');
  const value = parsed(text);
  if (isJson(value) && value['format'] === recordingFormat && value['version'] !== recordingVersion)
    throw notARecording(file, `another version of agent wrote it (form ${value['version']})`);
  const { error } = recordingSchema.safeParse(value);
  const [issue] = error?.issues ?? [];
  if (issue !== undefined)
    throw notARecording(
      file,
      `it was changed, so it cannot be read (at ${issue.path.join('.') || 'its beginning'})`,
    );
  // The order of the fields counts, and the schema may change it.
  return value as Recording;
};

/** How the file agrees with the journal of the project in which the command runs. */
interface Comparison {
  readonly note: string;
  readonly problem: string | null;
}

const compared = (note: string): Comparison => ({ note, problem: null });

const entriesIn = (answer: unknown): readonly RecordedEntry[] =>
  (answer as { readonly entries: readonly RecordedEntry[] }).entries;

/** @throws UsageError, CallError, StoreError */
const compareWithJournal = async (
  { connection, project }: CommandContext,
  { task: { task_id }, head }: Recording,
): Promise<Comparison> => {
  if (head === null) return compared('the task has no journal');
  const client = await connection.files();
  const read = async (after_seq: number) =>
    entriesIn(await client.call('history', { task_id, after_seq, limit: 2, kept: true }));
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

const compareIfPossible = async (
  context: CommandContext,
  recording: Recording,
): Promise<Comparison> => {
  try {
    return await compareWithJournal(context, recording);
  } catch (error) {
    return compared(`not compared with the journal of a project: ${messageOf(error)}`);
  }
};

/** Whether the page around the recording is ours; null when another build wrote it. */
const isOurPage = (document: string, recording: Recording): boolean | null => {
  const page = readRecordingPage();
  if (recording.page !== page.digest) return null;
  return `${renderRecording(recording, page)}\n` === document;
};

const lines = (
  { task, made_at, head }: Recording,
  { entries, leftOut, withoutHash, isFolded }: Proof,
  page: boolean | null,
): readonly string[] => [
  `${task.task_id}: ${plural(head?.entries ?? 0, 'entry', 'entries')}, exported ${made_at}: no entry was altered, reordered or cut off`,
  `  hashes    ${plural(entries, 'entry follows', 'entries follow')} each other`,
  isFolded
    ? '  machines  come to every recorded state'
    : '  machines  not run: the file does not hold every transition',
  ...(leftOut > 0
    ? [`  left out  ${plural(leftOut, 'entry is', 'entries are')} in the file by hash only`]
    : []),
  ...(withoutHash > 0
    ? [`  no hash   ${plural(withoutHash, 'entry', 'entries')} of version 2.1, which kept none`]
    : []),
  page === null
    ? '  page      written by another build of agent, so only its data were checked'
    : '  page      as this agent writes it',
];

/** Exit code 1 when the file is not as it was exported. @throws CallError, UsageError */
export const verifyRecording = async (
  context: CommandContext,
  name: string,
  taskId: string | undefined,
): Promise<number> => {
  const { io, json, cwd } = context;
  if (taskId !== undefined) throw new UsageError('give a task or --verify, not both');
  const document = readDocument(resolve(cwd, name), name);
  const recording = recordingOf(document, name);
  const proof = proveRecording(recording);
  const page = isOurPage(document, recording);
  const changedPage =
    page === false ? 'the journal is as it was written, but the page around it was changed' : null;
  const own = proof.problem ?? changedPage;
  const { note, problem: other } =
    own === null ? await compareIfPossible(context, recording) : compared('');
  const problem = own ?? other;
  if (json)
    io.json({
      file: name,
      task_id: recording.task.task_id,
      entries: proof.entries,
      left_out: proof.leftOut,
      without_hash: proof.withoutHash,
      replayed: proof.isFolded,
      page: page === null ? 'of another build' : page ? 'ours' : 'changed',
      journal: note,
      problem,
    });
  if (problem !== null) {
    io.err(`agent: ${name}: ${problem}`);
    return exitCodes.failed;
  }
  if (!json) for (const line of lines(recording, proof, page)) io.out(line);
  if (!json) io.out(`  journal   ${note}`);
  return exitCodes.done;
};
