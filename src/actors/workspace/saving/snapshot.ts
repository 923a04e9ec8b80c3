import { closeSync, existsSync, mkdirSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bytesText } from '../../../machines/bytes.ts';
import { plural, someOf } from '../../../machines/plural.ts';
import { hasCode } from '../../files/error-code.ts';
import { openBelow, openFolder, readLinkIn, withFile } from '../folders/handles.ts';
import { shownName, textOf } from '../folders/names.ts';
import { unlockWay } from '../folders/removal.ts';
import { isGone, isShut, type WalkCandidate, walk } from '../folders/walk.ts';
import {
  type Blob,
  blobContent,
  blobName,
  blobOf,
  keepBlob,
  type ObjectFormat,
  readBlob,
} from '../git/blobs.ts';
import {
  createGit,
  type Git,
  GitError,
  GitTimeout,
  reasonIn,
  requiredLine,
  requireGit,
} from '../git/git.ts';
import { type Index, type IndexEntry, readIndex } from '../git/index-file.ts';
import type { LeftOut } from '../git/work-records.ts';
import { asPointer, type Form, formsOf, hasLineEnds, withoutReturns } from '../merging/filters.ts';
import { createIgnoredFiles } from './ignored-files.ts';
import { type IndexChange, indexRecords, type Snapshot, type SnapshotJob } from './snapshot-job.ts';

/** Folders that test runners, compilers and caches make again. */
const generated =
  /^(?:.*?\/)?(?:node_modules|coverage|htmlcov|\.nyc_output|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.tox|\.cache|\.turbo|\.parcel-cache|__pycache__)\//;

/**
 * True for what other programs make again. `path`: of a file, or of a folder with `/` at its end.
 */
export const isGenerated = (path: string): boolean => generated.test(path);

const namedAtMost = 3;

/** The note on work that has such files; null for other work. `paths`: of its changed files. */
export const generatedNote = (paths: readonly string[]): string | null => {
  const found = paths.filter(isGenerated);
  if (found.length === 0) return null;
  const folders = [...new Set(found.map((path) => generated.exec(path)?.[0] ?? path))];
  return `${plural(found.length, 'changed file')} in ${someOf(folders, namedAtMost)}, which programs generate; if it is no part of the work, put it into .gitignore and run the task again`;
};

const rulesAtMost = 1024 * 1024;
/** A user can write rules that take git for ever. */
const ignoreLimitMs = 5_000;
const latin1 = (path: string): Buffer => Buffer.from(path, 'latin1');

/**
 * Asks git which paths it ignores. Git runs in a folder of ours that has only copies of the
 * `.gitignore` files and the folders in question, so it opens nothing that somebody else is
 * changing.
 */
const createIgnores = (
  git: Git,
  shadow: string,
  note: (text: string) => void,
  signal: AbortSignal,
) => {
  let areTooSlow = false;
  mkdirSync(shadow, { recursive: true, mode: 0o700 });
  const at = (path: string): Buffer => latin1(join(shadow, path));
  const env = { GIT_WORK_TREE: shadow, GIT_INDEX_FILE: '/nonexistent', GIT_LITERAL_PATHSPECS: '0' };
  return {
    showRules: (folder: number, path: string): void => {
      try {
        const rules = withFile(folder, '.gitignore', (file, size) => {
          const bytes = Buffer.alloc(Math.min(size, rulesAtMost));
          return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0));
        });
        if (rules === null) return;
        mkdirSync(at(path), { recursive: true });
        writeFileSync(at(`${path}.gitignore`), rules);
      } catch (error) {
        if (!isGone(error) && !isShut(error)) throw error;
      }
    },
    ignored: async (paths: readonly string[]): Promise<ReadonlySet<string>> => {
      if (areTooSlow) return new Set();
      for (const path of paths) if (path.endsWith('/')) mkdirSync(at(path), { recursive: true });
      const input = latin1(paths.map((path) => `${path}\0`).join(''));
      const args = ['check-ignore', '-z', '--stdin', '--no-index'];
      const answer = await git(args, {
        env,
        cwd: shadow,
        input,
        signal,
        limitMs: ignoreLimitMs,
      }).catch((error: unknown) => {
        if (error instanceof GitTimeout) return null;
        throw error;
      });
      if (answer === null) {
        areTooSlow = true;
        note(
          `the rules of .gitignore took git more than ${ignoreLimitMs / 1_000} s; no further file was treated as ignored`,
        );
        return new Set();
      }
      const { code, stdout, stderr } = answer;
      if (code !== 0 && code !== 1)
        throw new GitError(`git could not say which files are ignored: ${reasonIn(stderr)}`);
      return new Set(stdout.toString('latin1').split('\0'));
    },
  };
};

interface FolderReading {
  readonly index: Index;
  readonly git: Git;
  readonly note: (text: string) => void;
  /** Notes that a path (latin1) is not saved, and why. */
  readonly leave: (path: string, why: string, bytes?: number) => void;
  /** @throws when the job was aborted or took too long */
  readonly checkpoint: () => void;
  readonly signal: AbortSignal;
}

const mebibyte = 1024 ** 2;
/** The limit of the usual hosts of repositories. */
const fileMiB = 100;
/** Reading and storing this much takes seconds at most. */
const saveMiB = 512;

const modeOf = ({ stat }: WalkCandidate): string => {
  if (stat.isSymbolicLink()) return '120000';
  return (stat.mode & 0o100) === 0 ? '100644' : '100755';
};

const contentIn = (folder: number, name: string): Blob | null =>
  withFile(folder, name, (file, size) => (size > fileMiB * mebibyte ? null : readBlob(file, size)));

interface Found {
  readonly path: string;
  readonly mode: string;
  readonly blob: Blob;
  readonly before: IndexEntry | undefined;
}

const createKeeper = (
  { objects, format, largeFiles }: SnapshotJob,
  leave: FolderReading['leave'],
) => {
  const changes: IndexChange[] = [];
  const inOtherForm = new Map<string, Pick<Found, 'mode' | 'before'>>();
  const oidOf = ({ mode, blob, before }: Found): string | null => {
    const oid = blobName(blob, format);
    return before?.oid === oid && before.mode === Number.parseInt(mode, 8) ? null : oid;
  };
  const keep = (found: Found): void => {
    const oid = oidOf(found);
    if (oid === null) return;
    keepBlob(objects, oid, found.blob);
    changes.push({ path: found.path, to: { mode: found.mode, oid } });
  };
  return {
    changes,
    inOtherForm,
    keep,
    take: (found: Found, held: boolean): void => {
      const { path, mode, blob, before } = found;
      if (held) {
        if (oidOf(found) !== null)
          leave(path, 'other programs run or trust it, so agents may not change it');
      } else if (mode === '120000' || (largeFiles === null && !hasLineEnds(blob))) keep(found);
      else if (oidOf(found) !== null) inOtherForm.set(path, { mode, before });
    },
  };
};

/** Stores files with CR LF and files of git-lfs as the user's git would. */
const keepInOtherForm = async (
  job: SnapshotJob,
  { inOtherForm, keep }: ReturnType<typeof createKeeper>,
  root: number,
  signal: AbortSignal,
): Promise<void> => {
  if (inOtherForm.size === 0) return;
  const again = (path: string): Buffer | null => {
    const cut = path.lastIndexOf('/') + 1;
    const folder = openBelow(root, path.slice(0, cut));
    try {
      const blob = contentIn(folder, path.slice(cut));
      return blob === null ? null : blobContent(blob);
    } finally {
      closeSync(folder);
    }
  };
  const earlier = new Map([...inOtherForm].map(([path, { before }]) => [path, before]));
  const { index, hasAutoCrlf, largeFiles } = job;
  const rules = {
    git: createGit(job.program, job.userGitDir),
    index,
    hasAutoCrlf,
    usesLargeFiles: largeFiles !== null,
    signal,
  };
  const forms = await formsOf(earlier, rules, again);
  const inForm = (content: Buffer, form: Form | undefined): Buffer => {
    if (form === 'lf') return withoutReturns(content);
    return form === 'pointer' && largeFiles !== null ? asPointer(largeFiles, content) : content;
  };
  for (const [path, { mode, before }] of inOtherForm) {
    const content = again(path);
    if (content !== null)
      keep({ path, mode, before, blob: blobOf(inForm(content, forms.get(path))) });
  }
};

const findChanges = async (
  job: SnapshotJob,
  { index, git, note, leave, checkpoint, signal }: FolderReading,
): Promise<readonly IndexChange[]> => {
  const keeper = createKeeper(job, leave);
  let bytesLeft = saveMiB * mebibyte;

  const take = (candidate: WalkCandidate): void => {
    const { path, folder, name, stat, before, held } = candidate;
    checkpoint();
    const leaveOut = (why: string): void => leave(path, why);
    try {
      if (stat.size > fileMiB * mebibyte) leaveOut(`it has more than ${fileMiB} MiB`);
      else if (stat.size > bytesLeft)
        leaveOut(`a save takes at most ${saveMiB} MiB of changed files`);
      else {
        bytesLeft -= stat.size;
        const blob = stat.isSymbolicLink()
          ? blobOf(readLinkIn(folder, name))
          : contentIn(folder, name);
        if (blob !== null) keeper.take({ path, mode: modeOf(candidate), blob, before }, held);
      }
    } catch (error) {
      if (isGone(error)) return;
      const isShut =
        hasCode(error, 'EACCES', 'EPERM') && 'syscall' in error && error.syscall === 'open';
      if (!isShut) throw error;
      leaveOut('it cannot be read');
    }
  };

  if (job.protects) unlockWay(job.top, job.prefix);
  const root = openFolder(job.top);
  try {
    const ignores = createIgnores(git, join(job.temporary, 'rules'), note, signal);
    const copied = new Set(job.copied);
    const lookAtFiles =
      job.keep === null ? () => null : createIgnoredFiles(root, job.prefix, job.keep, checkpoint);
    const nameFiles = (path: string, reason: string): void => {
      const left = lookAtFiles(path, reason);
      if (left !== null) leave(path, left.why, left.bytes);
    };
    const ignored = async (paths: readonly string[]): Promise<ReadonlySet<string>> => {
      const isCopy = (path: string): boolean => copied.has(path.replace(/\/$/, ''));
      const copies = paths.filter(isCopy);
      const found = await ignores.ignored(paths);
      for (const path of paths)
        if (found.has(path) && !isCopy(path) && !isGenerated(textOf(path)))
          nameFiles(path, 'git ignores it');
      return new Set([...found, ...copies]);
    };
    const { prefix, isRepository, protects, hasIgnoreRules, heldPlaces } = job;
    const what = {
      index,
      prefix,
      isRepository,
      protects,
      hasIgnoreRules,
      heldPlaces,
      take,
      note,
      leave,
      submodule: (path: string) => nameFiles(`${path}/`, 'it is in a submodule'),
      checkpoint,
      showRules: ignores.showRules,
      ignored,
    };
    const gone = await walk(root, what);
    await keepInOtherForm(job, keeper, root, signal);
    return [...gone.map((path) => ({ path, to: null })), ...keeper.changes];
  } finally {
    closeSync(root);
  }
};

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
    index: known,
    git,
    note,
    leave,
    checkpoint,
    signal,
  });
  if (changes.length === 0) return { tree: null, notes: all(), left };
  // Deletions come first: they make room for a folder of that name.
  await putInto(git, [...job.carried, ...changes], format, (path) =>
    leave(path, 'git refuses this name'),
  );
  const tree = await requiredLine('the tree cannot be written', git(['write-tree'], { signal }));
  return { tree, notes: all(), left };
};
