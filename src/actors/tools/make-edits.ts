import { countLines } from '../files/text.ts';
import { keepWholeLines } from '../process/head-tail-buffer.ts';
import { runInThread, serveThread, ThreadLimit } from '../process/run-in-thread.ts';
import type { Checked } from './confine.ts';
import { createMatcher, type Replacement, type TextEdit } from './edit-match.ts';

const contextLines = 3;

interface LineChange {
  readonly first: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

interface ReplacedLines {
  readonly from: number;
  readonly to: number;
  readonly replacements: readonly Replacement[];
}

/** The replacements must be sorted and must not overlap. */
const applyReplacements = (source: string, replacements: readonly Replacement[]): string => {
  const starts = replacements.map(({ end }) => end);
  const parts = replacements.map(
    ({ start, text }, index) => source.slice(starts[index - 1] ?? 0, start) + text,
  );
  return parts.join('') + source.slice(starts.at(-1) ?? 0);
};

/** Widens replacements to whole lines; replacements on a common line share a span. */
const spansOf = (
  source: string,
  replacements: readonly Replacement[],
): readonly ReplacedLines[] => {
  const spans: ReplacedLines[] = [];
  for (const replacement of replacements) {
    const from = replacement.start === 0 ? 0 : source.lastIndexOf('\n', replacement.start - 1) + 1;
    const lineEnd = source.indexOf('\n', replacement.end);
    const to = lineEnd < 0 ? source.length : lineEnd;
    const previous = spans.at(-1);
    if (previous !== undefined && from <= previous.to)
      spans.splice(-1, 1, {
        from: previous.from,
        to,
        replacements: [...previous.replacements, replacement],
      });
    else spans.push({ from, to, replacements: [replacement] });
  }
  return spans;
};

const diffLines = (text: string): readonly string[] =>
  text.split('\n').map((line) => line.replace(/\r$/, ''));

const lineChangeIn = (source: string, { from, to, replacements }: ReplacedLines): LineChange => {
  const shifted = replacements.map(({ start, end, text }) => ({
    start: start - from,
    end: end - from,
    text,
  }));
  const before = diffLines(source.slice(from, to));
  const after = diffLines(applyReplacements(source.slice(from, to), shifted));
  const shortest = Math.min(before.length, after.length);
  let same = 0;
  while (same < shortest && before[same] === after[same]) same += 1;
  let sameEnd = 0;
  while (sameEnd < shortest - same && before.at(-1 - sameEnd) === after.at(-1 - sameEnd))
    sameEnd += 1;
  return {
    first: countLines(source, 0, from) - 1 + same,
    removed: before.slice(same, before.length - sameEnd),
    added: after.slice(same, after.length - sameEnd),
  };
};

const rangeOf = (first: number, count: number): string =>
  `${count === 0 ? first : first + 1},${count}`;

/** A unified diff with three lines of context; the contexts of neighbouring hunks never overlap. */
const unifiedDiff = (
  path: string,
  source: string,
  replacements: readonly Replacement[],
): string => {
  const lines = diffLines(source.endsWith('\n') ? source.slice(0, -1) : source);
  const changes = spansOf(source, replacements).map((span) => lineChangeIn(source, span));
  let shownTo = 0;
  let shift = 0;
  const hunks = changes.map(({ first, removed, added }, index) => {
    const from = Math.max(shownTo, first - contextLines);
    const end = first + removed.length;
    const to = Math.min(
      lines.length,
      end + contextLines,
      changes[index + 1]?.first ?? lines.length,
    );
    const [before, after] = [lines.slice(from, first), lines.slice(end, to)];
    const kept = before.length + after.length;
    const header = `@@ -${rangeOf(from, kept + removed.length)} +${rangeOf(from + shift, kept + added.length)} @@`;
    shownTo = to;
    shift += added.length - removed.length;
    const prefixed = (sign: string, some: readonly string[]) =>
      some.map((line) => `${sign}${line}`);
    return [
      header,
      ...prefixed(' ', before),
      ...prefixed('-', removed),
      ...prefixed('+', added),
      ...prefixed(' ', after),
    ];
  });
  return [`--- a/${path}`, `+++ b/${path}`, ...hunks.flat()].join('\n');
};

const maxDiffBytes = 8 * 1024;

const editName = (index: number): string => `edits[${index}]`;

/** All replacements, sorted; or every reason why an edit cannot be made. */
const planEdits = (source: string, edits: readonly TextEdit[]): Checked<readonly Replacement[]> => {
  const match = createMatcher(source);
  let hint = true;
  const matches = edits.map((edit, index) => {
    const found = match(edit, hint);
    hint &&= found.ok;
    return { index, match: found };
  });
  const faults = matches.flatMap(({ index, match }) =>
    match.ok ? [] : [`${editName(index)}: ${match.text}`],
  );
  const placed = matches
    .flatMap(({ index, match }) => (match.ok ? [{ index, ...match.value }] : []))
    .sort((a, b) => a.start - b.start);
  const overlaps = placed.flatMap(({ index, start }, place) => {
    const previous = placed[place - 1];
    return previous !== undefined && start < previous.end
      ? [`${editName(previous.index)} and ${editName(index)} overlap; make them one edit`]
      : [];
  });
  const reasons = [...faults, ...overlaps];
  return reasons.length > 0
    ? { ok: false, text: `no edit was made:\n${reasons.join('\n')}` }
    : { ok: true, value: placed.map(({ start, end, text }) => ({ start, end, text })) };
};

const shortDiff = (path: string, source: string, replacements: readonly Replacement[]): string => {
  const lines = unifiedDiff(path, source, replacements).split('\n');
  const { text, count } = keepWholeLines(lines, maxDiffBytes);
  return count < lines.length ? `${text}\n[the diff has ${lines.length - count} more lines]` : text;
};

interface EditJob {
  readonly path: string;
  readonly source: string;
  readonly edits: readonly TextEdit[];
}

interface MadeEdits {
  readonly edited: string;
  readonly diff: string;
}

const editNow = ({ path, source, edits }: EditJob): Checked<MadeEdits> => {
  const planned = planEdits(source, edits);
  if (!planned.ok) return planned;
  const edited = applyReplacements(source, planned.value);
  return edited === source
    ? { ok: false, text: 'no edit was made: new_text is the same as old_text' }
    : { ok: true, value: { edited, diff: shortDiff(path, source, planned.value) } };
};

/** Less text (characters) is done with before a thread has started. */
const quickLength = 64 * 1024;
const timeoutMs = 20_000;

/** Finds and replaces the texts, and shows the difference; a large text in a thread. */
export const makeEdits = async (job: EditJob, signal: AbortSignal): Promise<Checked<MadeEdits>> => {
  const wanted = job.edits.reduce((sum, { old_text }) => sum + old_text.length, 0);
  if (job.source.length + wanted < quickLength) return editNow(job);
  try {
    return await runInThread({
      module: import.meta.url,
      name: 'edit',
      input: job,
      timeoutMs,
      signal,
    });
  } catch (error) {
    if (!(error instanceof ThreadLimit)) throw error;
    return { ok: false, text: `no edit was made: the search for old_text ${error.message}` };
  }
};

serveThread<EditJob>('edit', editNow);
