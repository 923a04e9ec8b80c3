import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bytesText } from '../../../machines/bytes.ts';
import { shownName, textOf } from '../folders/names.ts';
import type { ObjectFormat } from '../git/blobs.ts';
import { createGit, type Git, GitError, requiredLine, requireGit } from '../git/git.ts';
import { readIndex } from '../git/index-file.ts';
import type { LeftOut } from '../git/work-records.ts';
import { findChanges } from './folder-changes.ts';
import { type IndexChange, indexRecords, type Snapshot, type SnapshotJob } from './snapshot-job.ts';

const mostNotes = 50;
const snapshotLimitMs = 120_000;

const putInto = async (
  git: Git,
  changes: readonly IndexChange[],
  format: ObjectFormat,
  refused: (path: string) => void,
): Promise<void> => {
  if (changes.length === 0) return;
  const input = indexRecords(changes, format);
  const answer = await git(['update-index', '-z', '--index-info'], { input });
  const [only] = changes;
  // Git leaves some names out and still exits with 0.
  if (answer.ok && !answer.stderr.includes('Ignoring path')) return;
  if (changes.length === 1 && only !== undefined) {
    if (!/[Ii]nvalid path|Ignoring path|malformed/.test(answer.stderr))
      throw new GitError(`a change cannot be saved: ${answer.stderr}`);
    return refused(only.path);
  }
  const half = Math.ceil(changes.length / 2);
  await putInto(git, changes.slice(0, half), format, refused);
  await putInto(git, changes.slice(half), format, refused);
};

/** What was left out is a note for people, and a list for programs. */
const createNotes = () => {
  const left: LeftOut[] = [];
  const notes: string[] = [];
  let more = 0;
  const note = (text: string): void => {
    if (notes.includes(text)) return;
    if (notes.length < mostNotes) notes.push(text);
    else more += 1;
  };
  return {
    note,
    left,
    leave: (path: string, why: string, bytes?: number): void => {
      const size = bytes === undefined ? '' : ` (${bytesText(bytes)})`;
      note(`${shownName(path)} was not saved: ${why}${size}`);
      if (left.length < mostNotes) left.push({ path: textOf(path), reason: why, bytes });
    },
    all: () => (more === 0 ? notes : [...notes, `and ${more} more of this kind`]),
  };
};

/** Turns a folder into a tree. Its files are read, hashed and stored, never run or followed. */
export const takeSnapshot = async (
  job: SnapshotJob,
  signal: AbortSignal,
  isAborted: () => boolean,
): Promise<Snapshot> => {
  const { temporary, objects, otherObjects, format } = job;
  const until = Date.now() + snapshotLimitMs;
  const checkpoint = (): void => {
    if (isAborted()) throw signal.reason ?? new Error('aborted');
    if (Date.now() > until)
      throw new GitError(`the folder could not be read within ${snapshotLimitMs / 1_000} s`);
  };
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  const { note, leave, left, all } = createNotes();
  const index = join(temporary, 'index');
  const elsewhere = {
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: otherObjects ?? '',
  };
  const git = createGit(job.program, job.gitDir, {
    GIT_INDEX_FILE: index,
    ...(otherObjects === null ? {} : elsewhere),
  });
  const isKnown = existsSync(job.index);
  const base = job.base === '' ? '--empty' : job.base;
  if (isKnown) writeFileSync(index, readFileSync(job.index));
  else await requireGit('its base cannot be read', git(['read-tree', base], { signal }));
  // A copy of the index would have a later time.
  const known = readIndex(isKnown ? job.index : index, format === 'sha256' ? 32 : 20);
  const changes = await findChanges(job, {
    ...{ index: known, git, note, leave, checkpoint, signal },
  });
  if (changes.length === 0) return { tree: null, notes: all(), left };
  // Deletions come first: they make room for a folder of that name.
  await putInto(git, [...job.carried, ...changes], format, (path) =>
    leave(path, 'git refuses this name'),
  );
  const tree = await requiredLine('the tree cannot be written', git(['write-tree'], { signal }));
  return { tree, notes: all(), left };
};
