import { plural, someOf } from '../../../machines/plural.ts';

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
