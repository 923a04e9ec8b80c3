import { joined, type Style, styled, type Text } from './styled.ts';
import { cutToWidth, textWidth } from './width.ts';

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

const gap = 2;
/** Fewer columns of the last cell say nothing. */
const lastAtLeast = 12;

/**
 * A header and rows in columns. `width`: the columns of the terminal, to which the last cell is
 * cut; null where lines may be long.
 */
export const renderTable = (
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number | null,
): Text => {
  const lines: readonly (readonly Cell[])[] = [
    header.map((text) => ({ text, style: 'bold' as const })),
    ...rows,
  ];
  const last = header.length - 1;
  const widths = header
    .slice(0, last)
    .map((_, at) => Math.max(...lines.map((line) => textWidth(line[at]?.text ?? ''))));
  const used = widths.reduce((sum, each) => sum + each + gap, 0);
  const room = width === null ? null : Math.max(lastAtLeast, width - used);

  const shown = (cell: Cell, at: number): Text => {
    const isLast = at === last;
    const text = isLast && room !== null ? cutToWidth(cell.text, room) : cell.text;
    const padding = isLast ? '' : ' '.repeat((widths[at] ?? 0) - textWidth(text) + gap);
    return [cell.style === undefined ? text : styled(cell.style, text), padding];
  };
  return joined(
    lines.map((line) => joined(line.map(shown), '')),
    '\n',
  );
};
