import { linkSync, lstatSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import { removeLeftovers, writeFileAtomically } from '../files/atomic-write.ts';
import { createWriteCheck, requireFreeSpace } from '../files/free-space.ts';
import { LockedError, withLock } from '../files/process-lock.ts';
import { isRealFolder, makeRealFolder } from '../files/real-folder.ts';
import { readRegularAsync, UnsafeFileError } from '../files/regular-file.ts';
import { appendDurably } from './append.ts';
import type { Issue } from './issue.ts';
import { formatIssues, formatLines, type IssuesDocument, parseIssues } from './issues-text.ts';
import { createOverlay, type IssueOverlay } from './overlay.ts';
import { findBdData, issuesBytesAtMost } from './ownership.ts';

/** `.beads/issues.jsonl` as a document that is read when it changed and replaced whole. */
export interface IssuesFile {
  /** @throws tracker_unavailable */
  read(): Promise<IssuesDocument>;
  /** @throws tracker_unavailable saying why nothing may be written now */
  requireWritable(): Promise<void>;
  /** Runs a change on a draft of the newest document, alone; what it answers true for is written. @throws tracker_unavailable */
  change(edit: (draft: IssueOverlay) => boolean): Promise<void>;
}

const fileUnavailable = (detail: string, remedy: string, cause?: unknown): ServiceError =>
  new ServiceError('tracker_unavailable', { detail, remedy }, { cause });

/** Held by whoever changes the tasks in a `.beads` folder. */
export const lockIn = (folder: string): string => join(folder, '.agent.lock');

const asUnavailable =
  (folder: string) =>
  (error: unknown): never => {
    if (error instanceof ServiceError) throw error;
    if (error instanceof LockedError)
      throw fileUnavailable(error.message, 'try again, or end the process that holds it', error);
    if (error instanceof UnsafeFileError) throw fileUnavailable(error.problem, error.remedy, error);
    throw fileUnavailable(
      messageOf(error),
      `check that ${folder} is a folder that can be written and that the disk is not full`,
      error,
    );
  };

const empty = (): IssuesDocument => ({ issues: new Map(), others: [], broken: [], torn: false });

/** Our lines went into a file that is no longer there; the change is made again on the new one. */
class MovedError extends Error {
  override readonly name = 'MovedError';
}
const triesAtMost = 5;
/** For the line of one more task. */
const lineBytes = 4096;

const sizeIn = (stamp: string): number => Number(stamp.split('/')[1] ?? -1);

export const createIssuesFile = (projectRoot: string): IssuesFile => {
  const folder = join(projectRoot, '.beads');
  const file = join(folder, 'issues.jsonl');
  const backup = `${file}.bak`;
  const writes = createWriteCheck(folder);
  let isTidy = false;
  let cached: { readonly stamp: string; readonly document: IssuesDocument } | null = null;

  const stampOf = (): string => {
    const found = lstatSync(file, { throwIfNoEntry: false });
    return found === undefined ? 'missing' : `${found.mtimeMs}/${found.size}/${found.ino}`;
  };

  /** A last line that was cut off: the whole lines count, and the file before it only for what is not among them. */
  const mended = async (document: IssuesDocument): Promise<IssuesDocument> => {
    const before = await readRegularAsync(backup, issuesBytesAtMost).catch(() => null);
    if (before === null) return document;
    const earlier = parseIssues(before);
    if (earlier.broken.length > 0 || earlier.torn) return document;
    return { ...document, issues: new Map([...earlier.issues, ...document.issues]) };
  };

  /** The document as it was read or written last, when the file has not changed since. */
  const unchanged = (): IssuesDocument | null => {
    if (cached === null || cached.stamp !== stampOf()) return null;
    return cached.document;
  };

  const load = async (): Promise<IssuesDocument> => {
    const known = unchanged();
    if (known !== null) return known;
    const stamp = stampOf();
    const parsed = stamp === 'missing' ? empty() : parseIssues(await readRegularAsync(file, issuesBytesAtMost));
    const document = parsed.torn ? await mended(parsed) : parsed;
    cached = { stamp, document };
    return document;
  };

  const requireOurs = (document: IssuesDocument): void => {
    const sign = findBdData(folder);
    if (sign !== undefined)
      throw fileUnavailable(
        `bd keeps this project's tasks in its own database (.beads/${sign})`,
        'install bd and use it',
      );
    const [first] = document.broken;
    if (first !== undefined)
      throw fileUnavailable(`${file} line ${first.line} cannot be read: ${first.problem}`, 'mend or remove that line');
  };

  const keepBackup = (): void => {
    if (stampOf() === 'missing') return;
    if (lstatSync(backup, { throwIfNoEntry: false }) !== undefined) unlinkSync(backup);
    linkSync(file, backup);
  };

  /** @returns the size of the file that holds exactly the document with the changes. */
  const replace = async (document: IssuesDocument, draft: IssueOverlay): Promise<number> => {
    const text = formatIssues({ ...document, issues: draft.merged() });
    await writeFileAtomically(file, text, { mode: 0o600, beforeRename: keepBackup });
    return Buffer.byteLength(text);
  };

  /** @returns as `replace`; null when the file is not the one that was read, so that it must be read again. */
  const append = async (fresh: readonly Issue[], sizeRead: number): Promise<number | null> => {
    const appended = await appendDurably(file, formatLines(fresh));
    if (appended === null) throw new MovedError(`${file} was replaced by another program while it was written`);
    return appended.before === sizeRead ? appended.after : null;
  };

  /** New issues are appended, so that creating one costs the same in a project of any size; all else replaces the file. */
  const write = (document: IssuesDocument, draft: IssueOverlay, stamp: string): Promise<number | null> => {
    const fresh = document.torn || stamp === 'missing' ? null : draft.onlyAdded();
    return fresh === null ? replace(document, draft) : append(fresh, sizeIn(stamp));
  };

  const changeOnce = async (edit: (draft: IssueOverlay) => boolean): Promise<void> => {
    const document = await load();
    requireOurs(document);
    const draft = createOverlay(document.issues);
    if (!edit(draft)) return;
    const size = await write(document, draft, cached?.stamp ?? 'missing');
    draft.apply();
    const stamp = stampOf();
    // Another size is the edit of another program, right before or behind ours.
    cached = sizeIn(stamp) === size ? { stamp, document: { ...document, torn: false } } : null;
  };

  const changeAlone = async (edit: (draft: IssueOverlay) => boolean): Promise<void> => {
    for (let tries = 1; ; tries += 1)
      try {
        return await changeOnce(edit);
      } catch (error) {
        if (!(error instanceof MovedError) || tries >= triesAtMost) throw error;
        cached = null;
      }
  };

  /** Tries the change on nothing when there is no folder yet: what is refused then does not make one. */
  const changesNothing = (edit: (draft: IssueOverlay) => boolean): boolean =>
    !isRealFolder(projectRoot, folder) && !edit(createOverlay(new Map()));

  const roomNeeded = (): number => Math.max(sizeIn(stampOf()), 0) + lineBytes;

  /** Removes temporary files of killed writers; the lock keeps other writers out. */
  const tidy = (): void => {
    if (!isTidy) removeLeftovers(folder);
    isTidy = true;
  };

  return {
    read: async () => {
      try {
        isRealFolder(projectRoot, folder);
        return unchanged() ?? (await load());
      } catch (error) {
        return asUnavailable(folder)(error);
      }
    },
    requireWritable: async () => {
      try {
        isRealFolder(projectRoot, folder);
        requireOurs(await load());
        writes.require(roomNeeded());
      } catch (error) {
        asUnavailable(folder)(error);
      }
    },
    change: async (edit) => {
      let needed = lineBytes;
      try {
        if (changesNothing(edit)) return;
        makeRealFolder(projectRoot, folder);
        needed = roomNeeded();
        requireFreeSpace(folder, lineBytes);
        await withLock(lockIn(folder), async () => {
          tidy();
          await changeAlone(edit);
        });
        writes.succeeded();
      } catch (error) {
        if (!(error instanceof ServiceError)) writes.failed(error, needed);
        asUnavailable(folder)(error);
      }
    },
  };
};
