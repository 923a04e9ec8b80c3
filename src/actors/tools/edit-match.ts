import type { Checked } from './confine.ts';
import { exactView, foldedView, foldText, type TextView } from './text-view.ts';

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

const occurrences = (text: string, wanted: string): readonly number[] => {
  const found: number[] = [];
  let at = text.indexOf(wanted);
  while (at >= 0 && found.length < maxCandidates) {
    found.push(at);
    at = text.indexOf(wanted, at + 1);
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

const lineNumberAt = (source: string, offset: number): number =>
  source.slice(0, offset).split('\n').length;

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

const textNotFound = (source: string, wanted: string): string => {
  const nearest = nearestLines(source, wanted);
  const hint =
    nearest.length > 0
      ? `the nearest lines are\n${nearest.join('\n')}`
      : 'no line is like its first line';
  return `old_text was not found; ${hint}`;
};

const ambiguous = (source: string, matches: readonly Match[]): string => {
  const numbers = matches.slice(0, shownCandidates).map(({ start }) => lineNumberAt(source, start));
  const more = matches.length > shownCandidates ? ' and more' : '';
  return `old_text matches more than once, at lines ${numbers.join(', ')}${more}; add lines around it until it is unique`;
};

const lineEndOf = (source: string): string => {
  const crlf = source.split('\r\n').length - 1;
  const all = source.split('\n').length - 1;
  return crlf > all - crlf ? '\r\n' : '\n';
};

/**
 * Finds the one match of each edit: an exact one first (CRLF counts as LF), else a folded one. New
 * text takes the line ends of the file. A refusal says what the model has to change.
 */
export const createMatcher = (source: string): ((edit: TextEdit) => Checked<Replacement>) => {
  const lineEnd = lineEndOf(source);
  const exact = exactView(source);
  let folded: TextView | null = null;

  const matchesOf = (wanted: string): readonly Match[] => {
    const matches = matchesIn(exact, wanted.replaceAll('\r\n', '\n'), false);
    const loose = foldText(wanted);
    if (matches.length > 0 || loose.trim() === '') return matches;
    folded ??= foldedView(source);
    return matchesIn(folded, loose, /[^\S\n]$/.test(wanted));
  };

  return ({ old_text, new_text }) => {
    const matches = matchesOf(old_text);
    const [match, another] = matches;
    if (match === undefined) return { ok: false, text: textNotFound(source, old_text) };
    if (another !== undefined) return { ok: false, text: ambiguous(source, matches) };
    return {
      ok: true,
      value: { ...match, text: new_text.replaceAll('\r\n', '\n').replaceAll('\n', lineEnd) },
    };
  };
};
