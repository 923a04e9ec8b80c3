import { z } from 'zod';
import { decodeUtf8 } from '../files/text.ts';
import { locate, refusePath, writeAccess } from './confine.ts';
import { readInside, writeInside } from './confined-files.ts';
import { makeEdits } from './make-edits.ts';
import type { OwnTool } from './port.ts';

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
    .max(50)
    .describe(
      'at most 50; each is matched against the file as it was before the call; they must not overlap; all of them are made, or none',
    ),
});

/** Keeps the byte order mark and the line ends of the file. */
export const editTool: OwnTool<z.infer<typeof editArguments>> = {
  name: 'edit',
  files: 'changes',
  isRepeatable: false,
  description:
    'Replaces parts of a text file. Each old_text must match one place exactly; differences in trailing spaces, line ends, typographic quotes and dashes do not matter. Returns a diff.',
  schema: editArguments,
  run: async ({ path, edits }, { root, isOwn, held, signal }) => {
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
    const made = await makeEdits({ path, source, edits }, signal);
    if (!made.ok) return made;
    const { edited, diff } = made.value;
    const written = await writeInside(root, path, mark + edited, access, held);
    if (!written.ok) return written;
    return { ok: true, text: `edited ${path}\n${diff}${written.value.note}` };
  },
};
