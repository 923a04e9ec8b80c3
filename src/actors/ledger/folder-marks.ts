import { randomUUID } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeRealFolder } from '../files/real-folder.ts';
import { readRegular } from '../files/regular-file.ts';

/**
 * Marks beside the tasks file. Each time that a store knows the file again it adds one, and keeps it
 * too. A clone, an older copy or a restored backup has not the last mark of the store: what its file
 * lacks was never removed by anybody. An edit, `git checkout` and `git stash` leave the marks alone.
 */
export interface FolderMarks {
  has(mark: string): boolean;
  /** @throws UnsafeFileError, and what the disk says */
  add(): string;
}

/** Several stores may share a folder, and one may have been away for some time. */
const marksAtMost = 50;
const bytesAtMost = 64 * 1024;
const before = '# ';

const folderIn = (projectRoot: string): string => join(projectRoot, '.beads', '.exchange');
// Git ignores a folder with this one, and the file itself.
const fileIn = (projectRoot: string): string => join(folderIn(projectRoot), '.gitignore');

/** The newest first. */
export const marksIn = (projectRoot: string): readonly string[] => {
  let text: string;
  try {
    text = readRegular(fileIn(projectRoot), bytesAtMost);
  } catch {
    return [];
  }
  const lines = text.split('\n').filter((line) => line.startsWith(before));
  return lines.map((line) => line.slice(before.length));
};

export const createFolderMarks = (projectRoot: string): FolderMarks => {
  const [folder, file] = [folderIn(projectRoot), fileIn(projectRoot)];
  const read = (): readonly string[] => marksIn(projectRoot);
  return {
    has: (mark) => read().includes(mark),
    add: () => {
      const mark = randomUUID();
      const temporary = `${file}.${mark}`;
      const lines = [mark, ...read()].slice(0, marksAtMost).map((each) => `${before}${each}\n`);
      makeRealFolder(projectRoot, folder);
      try {
        // Without fsync: a mark that is lost with the power removes no task.
        writeFileSync(temporary, `*\n${lines.join('')}`, { flag: 'wx', mode: 0o600 });
        renameSync(temporary, file);
      } catch (error) {
        rmSync(temporary, { force: true });
        throw error;
      }
      return mark;
    },
  };
};
