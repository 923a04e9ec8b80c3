import type { NewComment } from '../../machines/review.ts';

interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** The lines of each changed file that a patch shows, as they are after the change. */
export type ChangedLines = ReadonlyMap<string, readonly LineRange[]>;

const fileLine = /^(?:\+\+\+ "?b|--- "?a)\/([^\t\n"]+)/;
const hunkLine = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@/;

/** A file that was removed has no lines. */
export const linesIn = (patch: string): ChangedLines => {
  const found = new Map<string, LineRange[]>();
  let path = '';
  let isHead = true;
  for (const line of patch.split('\n')) {
    if (line.startsWith('diff --git ')) isHead = true;
    const [, file] = (isHead && fileLine.exec(line)) || [];
    if (file !== undefined) {
      path = file;
      found.set(path, found.get(path) ?? []);
    }
    const [, first, count = '1'] = hunkLine.exec(line) ?? [];
    if (first === undefined) continue;
    isHead = false;
    const from = Number(first);
    if (Number(count) > 0) found.get(path)?.push({ from, to: from + Number(count) - 1 });
  }
  return found;
};

const rangesAtMost = 20;

const rangesText = (ranges: readonly LineRange[]): string =>
  ranges
    .slice(0, rangesAtMost)
    .map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`))
    .join(', ');

const linesText = (ranges: readonly LineRange[]): string => {
  const [only] = ranges;
  const isOne = ranges.length === 1 && only?.from === only?.to;
  return `${isOne ? 'line' : 'lines'} ${rangesText(ranges)}`;
};

/** Null for a place that a reviewer can mean. A whole file may also be one of the project. */
export const commentProblem = (
  { path, line, endLine }: NewComment,
  changed: ChangedLines,
  isInProject: boolean,
  attempt: number,
): { readonly field: 'path' | 'line'; readonly says: string } | null => {
  const ranges = changed.get(path);
  if (ranges === undefined && !isInProject)
    return {
      field: 'path',
      says: `${path} is neither in the changes of attempt ${attempt} nor in the project`,
    };
  // A removed file and an attempt without changes have no lines to name.
  if (line === null || changed.size === 0 || ranges?.length === 0) return null;
  const last = endLine ?? line;
  if (ranges?.some(({ from, to }) => line >= from && last <= to) === true) return null;
  const given = last === line ? `line ${line}` : `lines ${line}-${last}`;
  const shown =
    ranges === undefined
      ? 'they do not touch that file; leave out the line'
      : `they have its ${linesText(ranges)}`;
  return {
    field: 'line',
    says: `${path}: the changes of attempt ${attempt} do not have ${given}; ${shown}`,
  };
};
