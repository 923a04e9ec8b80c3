import { resolve } from 'node:path';
import { type Proof, proveRecording } from '../../actors/journal/prove-recording.ts';
import { isGap, type Recording } from '../../actors/journal/recording.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { UsageError } from '../words/usage-error.ts';
import { type Comparison, compareIfPossible } from './compare-journal.ts';
import { readRecordingFile, recordingOf } from './read-recording.ts';
import { renderRecording } from './recording-document.ts';
import { readRecordingPage } from './recording-page.ts';

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
