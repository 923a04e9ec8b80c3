import { z } from 'zod';
import { decodeUtf8 } from '../files/decode-utf8.ts';
import { keepWholeLines } from '../process/head-tail-buffer.ts';
import { type Checked, locate, refusePath, writeAccess } from './confine.ts';
import { readInside, writeInside } from './confined-files.ts';
import { applyReplacements, unifiedDiff } from './diff.ts';
import { createMatcher, type Replacement, type TextEdit } from './edit-match.ts';
import type { Tool } from './port.ts';

const maxDiffBytes = 8 * 1024;
const byteOrderMark = '\uFEFF';

const editArguments = z.strictObject({
  path: z.string().min(1).describe('file path, relative to the workspace root'),
  edits: z
    .array(
      z.strictObject({
        old_text: z
          .string()
          .min(1)
          .describe('text of the file that occurs exactly once; add lines around it if need be'),
        new_text: z.string().describe('the text that replaces it'),
      }),
    )
    .min(1)
    .describe(
      'each is matched against the file as it was before the call; they must not overlap; all of them are made, or none',
    ),
});

const editName = (index: number): string => `edits[${index}]`;

/** All replacements, sorted; or every reason why an edit cannot be made. */
const planEdits = (source: string, edits: readonly TextEdit[]): Checked<readonly Replacement[]> => {
  const match = createMatcher(source);
  const matches = edits.map((edit, index) => ({ index, match: match(edit) }));
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

/** Keeps the byte order mark and the line ends of the file. */
export const editTool: Tool<z.infer<typeof editArguments>> = {
  name: 'edit',
  description:
    'Replaces parts of a text file. Each old_text must match one place exactly; differences in trailing spaces, line ends, typographic quotes and dashes do not matter. Returns a diff.',
  schema: editArguments,
  run: async ({ path, edits }, { root, isOwn, held }) => {
    const access = writeAccess(isOwn);
    const writable = await locate(root, path, access, held);
    if (!writable.ok) return writable;
    const file = await readInside(root, path);
    if (!file.ok) return file;
    const whole = decodeUtf8(file.value);
    if (whole === null)
      return refusePath(path, 'is not UTF-8 text, so it cannot be edited without damage');

    const mark = whole.startsWith(byteOrderMark) ? byteOrderMark : '';
    const source = whole.slice(mark.length);
    const planned = planEdits(source, edits);
    if (!planned.ok) return planned;
    const edited = applyReplacements(source, planned.value);
    if (edited === source)
      return { ok: false, text: 'no edit was made: new_text is the same as old_text' };

    const written = await writeInside(root, path, mark + edited, access, held);
    if (!written.ok) return written;
    return {
      ok: true,
      text: `edited ${path}\n${shortDiff(path, source, planned.value)}${written.value.note}`,
    };
  },
};
