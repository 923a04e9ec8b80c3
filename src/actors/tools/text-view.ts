/** A form of a text to search in, with a map back to the source. */
export interface TextView {
  readonly text: string;
  /**
   * Maps an offset of `text` to the source; null inside a character that was unfolded, such as a
   * ligature.
   */
  toSource(index: number): number | null;
}

interface ViewLine {
  readonly viewStart: number;
  readonly sourceStart: number;
  readonly content: string;
}

interface Piece {
  readonly text: string;
  readonly length: number;
}

const foldCharacters = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/[\u2018\u2019\u201A\u201B]/g, "'")
    .replace(/[\u201C\u201D\u201E\u201F]/g, '"')
    .replace(/[\u2010-\u2015\u2212]/g, '-');

const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length;

/**
 * Folds each character with its combining marks on its own, so that lengths add up. Marks are sorted
 * as they are folded, which takes quadratic time: a character with more than 30 of them, the limit of
 * Unicode's stream-safe format, is several.
 */
const piecesOf = (line: string): readonly Piece[] =>
  (line.match(/\P{M}\p{M}{0,30}|\p{M}{1,30}/gsu) ?? []).map((one) => ({
    text: foldCharacters(one),
    length: one.length,
  }));

const foldLine = (line: string): string => {
  const kept = line.trimEnd();
  return isAscii(kept)
    ? kept
    : piecesOf(kept)
        .map(({ text }) => text)
        .join('');
};

export const foldText = (text: string): string => text.split(/\r?\n/).map(foldLine).join('\n');

const columnInFolded = (content: string, column: number): number | null => {
  const folded = foldLine(content);
  if (column === folded.length) return content.length;
  if (isAscii(content)) return column;

  let viewColumn = 0;
  let sourceColumn = 0;
  for (const { text, length } of piecesOf(content)) {
    if (viewColumn >= column) break;
    viewColumn += text.length;
    sourceColumn += length;
  }
  return viewColumn === column ? sourceColumn : null;
};

const viewLines = (source: string, show: (line: string) => string): readonly ViewLine[] => {
  let viewStart = 0;
  let sourceStart = 0;
  return source.split('\n').map((raw, index, all) => {
    const content = index < all.length - 1 && raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    const line = { viewStart, sourceStart, content };
    viewStart += show(content).length + 1;
    sourceStart += raw.length + 1;
    return line;
  });
};

const lineAt = (lines: readonly ViewLine[], index: number): ViewLine | undefined => {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((lines[middle]?.viewStart ?? Number.POSITIVE_INFINITY) <= index) low = middle;
    else high = middle - 1;
  }
  return lines[low];
};

const viewOf = (
  source: string,
  show: (line: string) => string,
  columnOf: (content: string, column: number) => number | null,
): TextView => {
  const lines = viewLines(source, show);
  const toSource = (index: number): number | null => {
    const line = lineAt(lines, index);
    const column = line === undefined ? null : columnOf(line.content, index - line.viewStart);
    return line === undefined || column === null ? null : line.sourceStart + column;
  };
  return { text: lines.map(({ content }) => show(content)).join('\n'), toSource };
};

/** LF stands for CRLF; all else is as in the source. */
export const exactView = (source: string): TextView =>
  viewOf(
    source,
    (line) => line,
    (_, column) => column,
  );

export const foldedView = (source: string): TextView => viewOf(source, foldLine, columnInFolded);
