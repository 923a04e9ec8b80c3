import { countLines } from '../files/text.ts';
import type { Checked } from './confine.ts';

/** A form of a text to search in, with a map back to the source. */
interface TextView {
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

const foldText = (text: string): string => text.split(/\r?\n/).map(foldLine).join('\n');

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
const exactView = (source: string): TextView =>
  viewOf(
    source,
    (line) => line,
    (_, column) => column,
  );

const foldedView = (source: string): TextView => viewOf(source, foldLine, columnInFolded);

export interface TextEdit {
  readonly old_text: string;
  readonly new_text: string;
}

/** `start` and `end` are offsets in the file's text. */
export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Match {
  readonly start: number;
  readonly end: number;
}

const maxCandidates = 20;
const shownCandidates = 10;

/** For each beginning of the text, how long its longest end is that is a beginning, too. */
const bordersOf = (text: string): Int32Array => {
  const borders = new Int32Array(text.length);
  let length = 0;
  for (let at = 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    while (length > 0 && code !== text.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (code === text.charCodeAt(length)) length += 1;
    borders[at] = length;
  }
  return borders;
};

/** As Knuth, Morris and Pratt: `indexOf` compares up to the whole of `wanted` at each character. */
const occurrences = (text: string, wanted: string): readonly number[] => {
  const borders = bordersOf(wanted);
  const found: number[] = [];
  let length = 0;
  for (let at = 0; at < text.length && found.length < maxCandidates; at += 1) {
    const code = text.charCodeAt(at);
    while (length > 0 && code !== wanted.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (code === wanted.charCodeAt(length)) length += 1;
    if (length < wanted.length) continue;
    found.push(at + 1 - length);
    length = borders[length - 1] ?? 0;
  }
  return found;
};

const matchesIn = (view: TextView, wanted: string, mustEndLine: boolean): readonly Match[] =>
  occurrences(view.text, wanted).flatMap((at) => {
    const after = at + wanted.length;
    if (mustEndLine && after < view.text.length && view.text[after] !== '\n') return [];
    const [start, end] = [view.toSource(at), view.toSource(after)];
    return start === null || end === null ? [] : [{ start, end }];
  });

const pairsOf = (line: string): ReadonlySet<string> => {
  const text = line.trim().slice(0, 200);
  return new Set(
    Array.from({ length: Math.max(0, text.length - 1) }, (_, index) =>
      text.slice(index, index + 2),
    ),
  );
};

const likeness = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  const shared = [...one].filter((pair) => other.has(pair)).length;
  return (2 * shared) / Math.max(1, one.size + other.size);
};

const searchedLines = 20_000;
const shownLines = 3;
const leastLikeness = 0.4;

const nearestLines = (source: string, wanted: string): readonly string[] => {
  const target = pairsOf(wanted.split('\n').find((line) => line.trim() !== '') ?? '');
  return source
    .split(/\r?\n/, searchedLines)
    .map((line, index) => ({ line, number: index + 1, score: likeness(target, pairsOf(line)) }))
    .filter(({ score }) => score >= leastLikeness)
    .sort((a, b) => b.score - a.score)
    .slice(0, shownLines)
    .map(({ line, number }) => `${number}: ${line.slice(0, 200)}`);
};

const textNotFound = (source: string, wanted: string, hint: boolean): string => {
  if (!hint) return 'old_text was not found';
  const nearest = nearestLines(source, wanted);
  const found =
    nearest.length > 0
      ? `the nearest lines are\n${nearest.join('\n')}`
      : 'no line is like its first line';
  return `old_text was not found; ${found}`;
};

const ambiguous = (source: string, matches: readonly Match[]): string => {
  let [line, from] = [1, 0];
  const numbers = matches.slice(0, shownCandidates).map(({ start }) => {
    line += countLines(source, from, start) - 1;
    from = start;
    return line;
  });
  const more = matches.length > shownCandidates ? ' and more' : '';
  return `old_text matches more than once, at lines ${numbers.join(', ')}${more}; add lines around it until it is unique`;
};

const lineEndOf = (source: string): string => {
  const all = countLines(source) - 1;
  const crlf = (source.length - source.replaceAll('\r\n', '').length) / 2;
  return crlf > all - crlf ? '\r\n' : '\n';
};

/**
 * Finds the one match of each edit: an exact one first (CRLF counts as LF), else a folded one. New
 * text takes the line ends of the file. A refusal says what the model has to change.
 */
export const createMatcher = (
  source: string,
): ((edit: TextEdit, hint: boolean) => Checked<Replacement>) => {
  const lineEnd = lineEndOf(source);
  const exact = exactView(source);
  let folded: TextView | null = null;

  const matchesOf = (wanted: string): readonly Match[] => {
    const matches = matchesIn(exact, wanted.replaceAll('\r\n', '\n'), false);
    if (matches.length > 0) return matches;
    const loose = foldText(wanted);
    if (loose.trim() === '') return matches;
    folded ??= foldedView(source);
    return matchesIn(folded, loose, /[^\S\n]$/.test(wanted));
  };

  return ({ old_text, new_text }, hint) => {
    const matches = matchesOf(old_text);
    const [match, another] = matches;
    if (match === undefined) return { ok: false, text: textNotFound(source, old_text, hint) };
    if (another !== undefined) return { ok: false, text: ambiguous(source, matches) };
    return {
      ok: true,
      value: { ...match, text: new_text.replaceAll('\r\n', '\n').replaceAll('\n', lineEnd) },
    };
  };
};
