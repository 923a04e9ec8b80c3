import { readFileSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { plural } from '../../machines/plural.ts';
import { fileProblem } from '../output/file-problem.ts';
import { oneLine } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import {
  type PlanItem,
  type PlannedTask,
  type PlanProblem,
  type ReadPlan,
  tasksOf,
} from './plan-item.ts';

const bullet = /^([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(\S.*)$/;
const box = /^\[([^\]]{0,10})\](.*)$/;
const heading = /^(#{1,6})[ \t]+(\S.*)$/;
const fence = /^[ \t]*(?:```|~~~)/;

interface OpenItem {
  readonly line: number;
  readonly indent: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly path: readonly string[];
  readonly notes: string[];
  readonly nested: number[];
}

const widthOf = (space: string): number => space.replaceAll('\t', '    ').length;

/** The text below an item, without the indentation that its lines share. */
const notesOf = ({ notes }: OpenItem): string => {
  const indents = notes.flatMap((line) =>
    line.trim() === '' ? [] : [line.length - line.trimStart().length],
  );
  const shared = Math.min(...indents);
  return notes
    .map((line) => line.slice(shared).trimEnd())
    .join('\n')
    .trim();
};

const describe = (item: OpenItem, above: OpenItem | undefined): string =>
  [item.title, notesOf(item), above === undefined ? '' : `This is a part of: ${above.title}`]
    .filter((part) => part !== '')
    .join('\n\n');

/**
 * Reads the items of a Markdown checklist: `- [ ] a task`. An item depends on those that are nested in
 * it; `- [x]` is done, and becomes no task. Other text below an item belongs to its description.
 */
const readChecklist = (text: string): ReadPlan => {
  const problems: PlanProblem[] = [];
  const all: { readonly item: OpenItem; readonly above: OpenItem | undefined }[] = [];
  const headings: string[] = [];
  /** From the outermost item to the one that was read last. */
  let open: OpenItem[] = [];
  let isCode = false;

  const add = (line: number, indent: number, mark: string, rest: string): void => {
    open = open.filter((each) => each.indent < indent);
    const above = open.at(-1);
    const title = rest.replace(/[ \t]+/g, ' ').trim();
    const isKnown = [' ', 'x', 'X'].includes(mark);
    if (!isKnown) problems.push({ line, problem: `expected [ ] or [x], but found [${mark}]` });
    else if (title === '') problems.push({ line, problem: 'the item has no text' });
    else if (!/^[ \t]/.test(rest))
      problems.push({ line, problem: `expected a space after [${mark}]` });
    const path = [...headings.filter(Boolean), ...open.map((each) => each.title)];
    const isDone = mark !== ' ';
    const item = { line, indent, title, isDone, path, notes: [], nested: [] };
    if (!isDone) above?.nested.push(line);
    all.push({ item, above });
    open.push(item);
  };

  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [, space = '', content = ''] = bullet.exec(line) ?? [];
    const [, mark, rest = ''] = isCode ? [] : (box.exec(content) ?? []);
    // `[text](address)` and `[text][name]` are links.
    const isLink = mark !== undefined && /^[([]/.test(rest);
    const [, level = '', words = ''] = isCode ? [] : (heading.exec(line) ?? []);
    if (level !== '') {
      headings.length = Math.min(headings.length, level.length - 1);
      while (headings.length < level.length - 1) headings.push('');
      headings.push(words.trim());
      open = [];
    } else if (mark !== undefined && !isLink) {
      add(index + 1, widthOf(space), mark, rest);
    } else {
      if (fence.test(line)) isCode = !isCode;
      const indent =
        line.trim() === '' ? Number.POSITIVE_INFINITY : widthOf(/^[ \t]*/.exec(line)?.[0] ?? '');
      open = open.filter((each) => each.indent < indent);
      open.at(-1)?.notes.push(line);
    }
  }

  const items = all.flatMap(({ item, above }): readonly PlanItem[] =>
    item.isDone
      ? []
      : [
          {
            line: item.line,
            path: item.path,
            title: item.title,
            labels: [],
            description: describe(item, above),
            dependsOn: item.nested,
          },
        ],
  );
  return { items, problems, done: all.length - items.length };
};

const bytesAtMost = 512 * 1024;
const problemsAtMost = 20;

const readText = (file: string): string => {
  const name = file === '-' ? 'standard input' : file;
  let bytes: Buffer;
  try {
    bytes = readFileSync(file === '-' ? 0 : file);
  } catch (error) {
    throw new UsageError(`${name} cannot be read: ${fileProblem(error)}`);
  }
  if (bytes.length > bytesAtMost)
    throw new UsageError(`${name} has more than ${bytesAtMost / 1024} KiB: split it`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${name} is no text in UTF-8`);
  }
};

type Format = 'checklist' | 'csv' | 'json';
const formats: Readonly<Record<string, Format>> = {
  '.md': 'checklist',
  '.markdown': 'checklist',
  '.csv': 'csv',
  '.json': 'json',
};

/** By its name, else by how it begins. */
const formatOf = (file: string, text: string): Format => {
  const named = file === '-' ? undefined : formats[extname(file).toLowerCase()];
  if (named !== undefined) return named;
  if (/^\s*\[\s*[{\]]/.test(text.slice(0, 10_000))) return 'json';
  const [first = ''] = text.slice(0, 10_000).split('\n', 1);
  const names = first.split(',').map((name) => name.replaceAll('"', '').trim().toLowerCase());
  return names.includes('title') ? 'csv' : 'checklist';
};

const read = async (format: Format, text: string): Promise<ReadPlan> => {
  if (format === 'checklist') return readChecklist(text);
  const { readCsv, readJson } = await import('./tables.ts');
  return format === 'csv' ? readCsv(text) : readJson(text);
};

interface Plan {
  /** For people. */
  readonly name: string;
  readonly tasks: readonly PlannedTask[];
  readonly done: number;
}

/** Reads the tasks that a file plans; `-` is standard input. @throws UsageError with each line that is wrong */
export const readPlan = async (file: string): Promise<Plan> => {
  const text = readText(file);
  const name = file === '-' ? 'standard input' : file;
  const format = formatOf(file, text);
  const plan = await read(format, text);
  const { tasks, problems } = tasksOf(file === '-' ? '-' : basename(file), plan);
  if (problems.length > 0) {
    const lines = problems
      .slice(0, problemsAtMost)
      .map(({ line, problem }) => `  ${name}:${line}: ${oneLine(problem, 300)}`);
    const more = problems.length - lines.length;
    throw new UsageError(
      [
        `nothing was made; the file has ${plural(problems.length, 'problem')}:`,
        ...lines,
        ...(more > 0 ? [`  and ${more} more`] : []),
      ].join('\n'),
    );
  }
  if (tasks.length === 0 && plan.done === 0)
    throw new UsageError(
      format === 'checklist'
        ? `${name} has no checklist: write each task as - [ ] what to do`
        : `${name} has no tasks`,
    );
  return { name, tasks, done: plan.done };
};
