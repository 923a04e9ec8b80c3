import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRealFolder } from '../files/real-folder.ts';
import { readRegular } from '../files/regular-file.ts';
import { issuesBytesAtMost } from './issues-file.ts';

/**
 * The name in a `.beads` folder that shows that bd keeps this project's tasks in a database of its
 * own; undefined without one. @throws when the folder is there and cannot be
 * listed, UnsafeFileError when it is a link
 */
export const findBdData = (folder: string): string | undefined =>
  folderNames(folder).find(isBdData);

const isBdData = (name: string): boolean =>
  ['metadata.json', 'config.yaml', 'dolt', 'embeddeddolt'].includes(name) ||
  (name.endsWith('.db') && !/backup|\.bak/.test(name));

const folderNames = (folder: string): readonly string[] =>
  isRealFolder(dirname(folder), folder) ? readdirSync(folder) : [];

/**
 * Counts the tasks in `.beads/issues.jsonl`, or those with this `id`; bd may not have imported
 * them.
 */
export const countTasksInFile = (projectRoot: string, id?: string): number => {
  let text: string;
  try {
    const folder = join(projectRoot, '.beads');
    if (!isRealFolder(projectRoot, folder)) return 0;
    text = readRegular(join(folder, 'issues.jsonl'), issuesBytesAtMost);
  } catch {
    return 0;
  }
  return text.split('\n').filter((line) => {
    if (!line.includes('"id"') || (id !== undefined && !line.includes(`"${id}"`))) return false;
    try {
      const issue = JSON.parse(line);
      return (
        typeof issue.title === 'string' &&
        issue.status !== 'tombstone' &&
        (id === undefined || issue.id === id)
      );
    } catch {
      return false;
    }
  }).length;
};
