import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { marksIn } from '../../../actors/ledger/exchange-state.ts';
import { isAlive } from '../../../actors/process/pid.ts';
import {
  findProject,
  type Project,
  readTrimmedOrNull,
  stateFiles,
  stateFolders,
  taskFiles,
} from './project.ts';

/** A store keeps one mark; the newest of the folder is the likeliest. */
const marksLookedFor = 5;
const partBytes = 1024 * 1024;
const readBytesAtMost = 512 * 1024 * 1024;

/** True when a file has one of the marks in it. They are random: nothing else has them. */
const fileHas = (path: string, marks: readonly string[]): boolean => {
  if (!existsSync(path)) return false;
  const file = openSync(path, 'r');
  try {
    const part = Buffer.alloc(partBytes);
    const overlap = Math.max(...marks.map((mark) => mark.length));
    for (let at = 0; at < readBytesAtMost; at += partBytes - overlap) {
      const read = part.subarray(0, readSync(file, part, 0, partBytes, at));
      if (marks.some((mark) => read.includes(mark))) return true;
      if (read.length < partBytes) return false;
    }
    return false;
  } finally {
    closeSync(file);
  }
};

const serverRuns = (stateDir: string): boolean => {
  try {
    const { pid } = JSON.parse(readFileSync(stateFiles(stateDir).server, 'utf8'));
    return typeof pid === 'number' && isAlive(pid);
  } catch {
    return false;
  }
};

/** The folder belongs to a project that is gone from its place, and has a mark of this one. */
const isOf = (stateDir: string, marks: readonly string[]): boolean => {
  const owner = readTrimmedOrNull(stateFiles(stateDir).owner);
  if (owner === null || existsSync(owner) || serverRuns(stateDir)) return false;
  return ['journal.db', 'journal.db-wal'].some((name) => fileHas(join(stateDir, name), marks));
};

const foldersIn = (shared: string): readonly string[] => {
  try {
    return readdirSync(shared).map((name) => join(shared, name));
  } catch {
    return [];
  }
};

const followMove = (project: Project, shared: string): void => {
  const { root, stateDir, defaultDir } = project;
  const isShared = stateDir === defaultDir;
  const isKnown = existsSync(isShared ? stateDir : taskFiles(project).journal);
  const marks = isKnown ? [] : marksIn(root).slice(0, marksLookedFor);
  if (marks.length === 0) return;
  const found = (isShared ? foldersIn(shared) : [stateDir]).find((each) => isOf(each, marks));
  if (found === undefined) return;
  if (found !== stateDir) renameSync(found, stateDir);
  writeFileSync(stateFiles(stateDir).owner, `${root}\n`, { mode: 0o600 });
};

/**
 * As `findProject`. Takes the state folder along when the project was renamed or moved: the marks
 * beside its tasks file say which it is. A copy, whose original is still there, begins anew.
 */
export const findMovedProject = (...place: Parameters<typeof findProject>): Project => {
  const project = findProject(...place);
  followMove(project, stateFolders(place[2]).shared);
  return project;
};
