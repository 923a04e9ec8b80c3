import type { PlanItem, PlanProblem, ReadPlan } from './plan-item.ts';

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
export const readChecklist = (text: string): ReadPlan => {
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
            ...{ line: item.line, path: item.path, title: item.title, labels: [] },
            description: describe(item, above),
            dependsOn: item.nested,
          },
        ],
  );
  return { items, problems, done: all.length - items.length };
};
