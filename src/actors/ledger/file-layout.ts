import { idIn } from './issue-line.ts';
import { type FileLine, readLines } from './issues-file.ts';

/** A line of the file: of a task, whose text is in the tables, or of something else. */
export type LayoutLine = { readonly end: string } & (
  | { readonly id: string }
  | { readonly text: string }
);

/** The form of the file, without its tasks: order, line ends, and lines that are no task. */
export interface FileLayout {
  readonly start: '' | '\ufeff';
  readonly lines: readonly LayoutLine[];
}

/**
 * Reads the order of a file that the tables know, its line ends, and what is not in the tables.
 * @throws UnsafeFileError
 */
export const readLayout = async (file: string): Promise<FileLayout> => {
  let start: FileLayout['start'] = '';
  const lines: LayoutLine[] = [];
  const add = (found: FileLine): void => {
    // The file was replaced since the tables took it; the write finds that, too.
    if ('problem' in found) return;
    if (found.hasByteOrderMark) start = '\ufeff';
    const { text, end } = found;
    const id = idIn(text);
    lines.push(id === null ? { text, end } : { id, end });
  };
  await readLines(file, (found) => {
    for (const each of found) add(each);
  });
  return { start, lines };
};

const isSorted = (ids: readonly string[]): boolean =>
  ids.every((id, index) => index === 0 || (ids[index - 1] ?? '') < id);

/**
 * The layout with lines for new tasks, in the order of their creation: each at its place in a file
 * that is sorted by id, as ours is, so that git merges those of two branches; else at the end.
 */
export const withNewTasks = (
  { start, lines }: FileLayout,
  fresh: readonly string[],
): FileLayout => {
  const ids = lines.flatMap((line) => ('id' in line ? [line.id] : []));
  const end = lines[0]?.end ?? '';
  const there = new Set(ids);
  const added = fresh.filter((id) => !there.has(id));
  const waiting = isSorted(ids) ? added.sort() : [];
  const placed: LayoutLine[] = [];
  let next = 0;
  for (const line of lines) {
    while ('id' in line && next < waiting.length && (waiting[next] ?? '') < line.id) {
      placed.push({ id: waiting[next] ?? '', end });
      next += 1;
    }
    placed.push(line);
  }
  const last = (waiting.length > 0 ? waiting.slice(next) : added).map((id) => ({ id, end }));
  if (last.length === 0) return { start, lines: placed };
  const final = placed.at(-1);
  const isEnded = final !== undefined && 'text' in final && final.text + final.end === '';
  const whole = isEnded
    ? placed.slice(0, -1)
    : placed.with(-1, { ...(final ?? { text: '' }), end });
  return { start, lines: [...whole, ...last, { text: '', end: '' }] };
};
