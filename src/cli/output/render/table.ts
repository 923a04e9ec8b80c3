import { stripControls } from '../safe-text.ts';
import { joined, type Style, styled, type Text } from '../styled.ts';
import { cutToWidth, textWidth } from '../wrap.ts';

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

const gap = 2;
/** Fewer columns of the last cell say little. */
const lastAtLeast = 12;
const alwaysShown = 2;

const roomForLast = (widths: readonly number[], width: number): number =>
  width - widths.reduce((sum, each) => sum + each + gap, 0);

/** The number of columns that fit before the last one. */
const fitting = (widths: readonly number[], width: number, atLeast: number): number => {
  let count = widths.length;
  while (count > alwaysShown && roomForLast(widths.slice(0, count), width) < atLeast) count -= 1;
  return count;
};

/** A row is one line, whatever a cell holds. */
const oneLined = ({ text, ...cell }: Cell): Cell => ({
  ...cell,
  text: stripControls(text).replaceAll(/[\r\n\t]+/g, ' '),
});

/**
 * A header and rows in columns. `width`: the columns of the terminal; null where lines may be long.
 * On a narrow terminal the columns before the last one are left out, and its cells are cut.
 */
export const renderTable = (
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number | null,
  atLeast = lastAtLeast,
): Text => {
  const lines: readonly (readonly Cell[])[] = [
    header.map((text) => ({ text, style: 'bold' as const })),
    ...rows.map((row) => row.map(oneLined)),
  ];
  const last = header.length - 1;
  const all = header
    .slice(0, last)
    .map((_, at) => Math.max(...lines.map((line) => textWidth(line[at]?.text ?? ''))));
  const widths = width === null ? all : all.slice(0, fitting(all, width, atLeast));
  const room = width === null ? null : Math.max(1, roomForLast(widths, width));

  const shown = (cell: Cell, at: number): Text => {
    const isLast = at === last;
    const text = isLast && room !== null ? cutToWidth(cell.text, room) : cell.text;
    const padding = isLast ? '' : ' '.repeat((widths[at] ?? 0) - textWidth(text) + gap);
    return [cell.style === undefined ? text : styled(cell.style, text), padding];
  };
  return joined(
    lines.map((line) =>
      joined(
        line.flatMap((cell, at) => (at < widths.length || at === last ? [shown(cell, at)] : [])),
        '',
      ),
    ),
    '\n',
  );
};
