import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AtEnd, temporaryFolder } from './temporary.ts';

const root = join(import.meta.dirname, '..', '..');
const sources = ['src', 'web', 'scripts', 'configs', 'package.json', 'tsconfig.json', 'LICENSE'];

/** A change of the sources: each pattern must be found in the file. */
export interface SourceEdit {
  readonly file: string;
  readonly change: readonly (readonly [RegExp, string])[];
}

const applyEdit = (folder: string, { file, change }: SourceEdit): void => {
  const path = join(folder, file);
  let text = readFileSync(path, 'utf8');
  for (const [pattern, replacement] of change) {
    if (text.search(pattern) === -1) throw new Error(`${file} has no ${pattern}`);
    text = text.replace(pattern, replacement);
  }
  writeFileSync(path, text);
};

const chartsEdit = (oldest: number, newest: number): SourceEdit => ({
  file: 'src/actors/journal/chart-versions.ts',
  change: [[/oldest: 1, newest: 1/, `oldest: ${oldest}, newest: ${newest}`]],
});

/** The state `acting` of the agent chart is called `working`. */
const renamedState = (): readonly SourceEdit[] => {
  const folder = 'src/machines/agent';
  const machines = readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
  return [...machines, 'src/actors/agent/session.ts']
    .filter((file) => /'acting'|^ +acting: /m.test(readFileSync(join(root, file), 'utf8')))
    .map((file) => ({ file, change: [[/'acting'|(?<=^ +)acting(?=: )/gm, "'working'"]] }));
};

const readsOldName: SourceEdit = {
  file: 'src/actors/journal/snapshots.ts',
  change: [
    [
      /JSON\.parse\(saved\.snapshot\)/,
      `JSON.parse(saved.version === 1 ? saved.snapshot.replaceAll('"acting"', '"working"') : saved.snapshot)`,
    ],
  ],
};

/**
 * Builds this project with changed charts: a version that goes on from the states of versions since
 * `oldest`. @returns the folder of its programs
 */
export const buildVersion = (oldest: number, newest: number, atEnd: AtEnd): string => {
  const folder = temporaryFolder(atEnd);
  for (const name of sources) cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const edits = [chartsEdit(oldest, newest), ...renamedState(), readsOldName];
  for (const edit of edits) applyEdit(folder, edit);
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'pipe' });
  return join(folder, 'dist', 'cli');
};
