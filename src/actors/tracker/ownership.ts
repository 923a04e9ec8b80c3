import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What in a `.beads` folder tells that bd keeps this project's tasks in a database of its own, or undefined
 * (facts/beads 11). @throws when the folder is there and cannot be listed
 */
export const signOfBd = (folder: string): string | undefined => namesIn(folder).find(isSign);

const isSign = (name: string): boolean =>
  ['metadata.json', 'config.yaml', 'dolt', 'embeddeddolt'].includes(name) ||
  (name.endsWith('.db') && !/backup|\.bak/.test(name));

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
};

/** How many tasks `.beads/issues.jsonl` holds beside a bd that may not have read them; `id` asks for one. */
export const tasksInFile = (projectRoot: string, id?: string): number => {
  let text: string;
  try {
    text = readFileSync(join(projectRoot, '.beads', 'issues.jsonl'), 'utf8');
  } catch {
    return 0;
  }
  return text.split('\n').filter((line) => {
    if (!line.includes('"id"') || (id !== undefined && !line.includes(`"${id}"`))) return false;
    try {
      const issue = JSON.parse(line);
      return typeof issue.title === 'string' && issue.status !== 'tombstone' && (id === undefined || issue.id === id);
    } catch {
      return false;
    }
  }).length;
};
