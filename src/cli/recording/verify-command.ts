import { resolve } from 'node:path';
import { type Proof, proveRecording } from '../../actors/journal/prove-recording.ts';
import type { Recording } from '../../actors/journal/recording.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { UsageError } from '../words/usage-error.ts';
import { compareIfPossible } from './compare-journal.ts';
import { readRecordingFile, recordingOf } from './read-recording.ts';
import { renderRecording } from './recording-document.ts';
import { readRecordingPage } from './recording-page.ts';

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

const changedPage = 'the journal is as it was written, but the page around it was changed';
const pageWords = (page: boolean | null): string =>
  page === null ? 'of another build' : page ? 'ours' : 'changed';

/** Exit code 1 when the file is not as it was exported. @throws CallError, UsageError */
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
  const { note, problem } =
    own === null ? await compareIfPossible(context, recording) : { note: '', problem: own };
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
      problem,
    });
  if (problem !== null) io.err(`agent: ${name}: ${problem}`);
  else if (!json)
    for (const line of [...lines(recording, proof, page), `  journal   ${note}`]) io.out(line);
  return problem === null ? exitCodes.done : exitCodes.failed;
};
