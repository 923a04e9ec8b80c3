import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Proof, proveRecording } from '../../actors/journal/replay/prove-recording.ts';
import {
  isGap,
  type RecordedEntry,
  type Recording,
  recordingFormat,
  recordingSchema,
  recordingVersion,
} from '../../actors/journal/replay/recording.ts';
import { isJsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import { CallError } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { fileProblem } from '../output/file-problem.ts';
import { UsageError } from '../words/usage-error.ts';
import { readRecordingPage, recordingIn, renderRecording } from './recording-document.ts';

/** Larger than any file that we write. */
const fileBytesAtMost = 100_000_000;

/** @throws UsageError when it cannot be read */
const readRecordingFile = (file: string, name: string): string => {
  try {
    const bytes = readFileSync(file);
    if (bytes.length <= fileBytesAtMost) return bytes.toString();
  } catch (error) {
    throw new UsageError(`${name} cannot be read: ${fileProblem(error)}`);
  }
  throw new UsageError(`${name} is larger than any exported task`);
};

/** Null when it is no JSON, or nested too deeply to be written again. */
const writableJson = (text: string): unknown => {
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
  const value = writableJson(text);
  if (
    isJsonObject(value) &&
    value['format'] === recordingFormat &&
    value['version'] !== recordingVersion
  )
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
  /** How far the file is the same journal; `none`: it was not compared. */
  readonly same: 'whole' | 'beginning' | 'none';
  readonly problem: string | null;
}

const compared = (same: Comparison['same'], note: string): Comparison => ({
  note,
  same,
  problem: null,
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
const compareIfPossible = async (
  context: CommandContext,
  recording: Recording,
): Promise<Comparison> => {
  try {
    return await compareWithJournal(context, recording);
  } catch (error) {
    return compared('none', `not compared with the journal of a project: ${messageOf(error)}`);
  }
};

/** True when the page around the recording is ours; null when another build wrote it. */
const isOurPage = (document: string, recording: Recording): boolean | null => {
  const page = readRecordingPage();
  if (recording.page !== page.digest) return null;
  return `${renderRecording(recording, page)}\n` === document;
};

interface Found {
  readonly recording: Recording;
  readonly proof: Proof;
  readonly same: Comparison['same'];
}

/** What the file and the journal prove together, and no more. */
const claimOf = ({ recording: { head, items }, proof, same }: Found): string => {
  if (head === null)
    return same === 'whole'
      ? 'the task has no journal'
      : 'it holds no journal, so nothing is proven';
  if (items.some(isGap))
    return `${proof.entries} of them are in the file and fit together; what the others hold is not proven`;
  if (proof.withoutHash > 0) return 'they fit together as far as they have hashes';
  if (same === 'none') return 'they fit together; that nobody wrote them anew is not proven';
  const end = same === 'whole' ? '' : ` up to entry ${head.seq}; the journal goes on`;
  return `no entry was altered, reordered or cut off${end}`;
};

/** Nothing is left out of the file, and no attempt began. */
const neverRan = ({ task, items }: Recording): boolean => task.attempt === 0 && !items.some(isGap);

/** False when the file holds too little to prove its entries and states. */
const isProven = ({ recording, proof, same }: Found): boolean =>
  recording.head === null
    ? same === 'whole'
    : proof.withoutHash === 0 && (proof.isFolded || neverRan(recording));

const machineWords = ({ recording, proof }: Found): string => {
  if (!proof.isFolded)
    return neverRan(recording)
      ? 'none ran'
      : 'not run, so no state is proven: the file does not hold every transition';
  return `come to every ${recording.items.some(isGap) ? 'state in the file' : 'recorded state'}`;
};

const lines = (found: Found, page: boolean | null): readonly string[] => {
  const { task, made_at, head } = found.recording;
  const { entries, leftOut, withoutHash } = found.proof;
  return [
    `${task.task_id}: ${plural(head?.entries ?? 0, 'entry', 'entries')}, exported ${made_at}: ${claimOf(found)}`,
    `  hashes    ${plural(entries, 'entry follows', 'entries follow')} each other`,
    `  machines  ${machineWords(found)}`,
    ...(leftOut > 0
      ? [`  left out  ${plural(leftOut, 'entry is', 'entries are')} in the file by hash only`]
      : []),
    ...(withoutHash > 0
      ? [`  no hash   ${plural(withoutHash, 'entry', 'entries')} of version 2.1, which kept none`]
      : []),
    page === null
      ? '  page      written by another build of agent, so only its data were checked'
      : '  page      as this agent writes it',
    '  sealed    the words of the task and its changes; who changes them can seal them anew',
  ];
};

const changedPage = 'the journal is as it was written, but the page around it was changed';
const pageWords = (page: boolean | null): string =>
  page === null ? 'of another build' : page ? 'ours' : 'changed';

/**
 * Exit code 1 when the file is not as it was exported, 9 when it holds too little to prove that.
 * @throws CallError, UsageError
 */
export const verifyRecording = async (
  context: CommandContext,
  name: string,
  taskId: string | undefined,
): Promise<number> => {
  const { io, json, cwd } = context;
  if (taskId !== undefined) throw new UsageError('give a task or --verify, not both');
  const document = readRecordingFile(resolve(cwd, name), name);
  const recording = recordingOf(document, name);
  const proof = proveRecording(recording);
  const page = isOurPage(document, recording);
  const own = proof.problem ?? (page === false ? changedPage : null);
  const { note, same, problem } =
    own === null
      ? await compareIfPossible(context, recording)
      : ({ note: '', same: 'none', problem: own } as const);
  const found = { recording, proof, same };
  const code =
    problem !== null ? exitCodes.failed : isProven(found) ? exitCodes.done : exitCodes.unproven;
  if (json)
    io.json({
      file: name,
      task_id: recording.task.task_id,
      entries: proof.entries,
      left_out: proof.leftOut,
      without_hash: proof.withoutHash,
      replayed: proof.isFolded,
      page: pageWords(page),
      journal: note,
      same_journal: same,
      proven: code === exitCodes.done,
      problem,
    });
  if (problem !== null) io.err(`agent: ${name}: ${problem}`);
  else if (!json) for (const line of [...lines(found, page), `  journal   ${note}`]) io.out(line);
  return code;
};
