import { keepWholeLines } from '../process/head-tail-buffer.ts';
import { runInThread, serveThread, ThreadLimit } from '../process/run-in-thread.ts';
import type { Checked } from './confine.ts';
import { applyReplacements, unifiedDiff } from './diff.ts';
import { createMatcher, type Replacement, type TextEdit } from './edit-match.ts';

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
