import { z } from 'zod';
import { keepWholeLines } from '../process/head-tail-buffer.ts';
import { locate } from './confine.ts';
import { expandBraces } from './glob.ts';
import type { Tool, ToolResult } from './port.ts';
import { maxLinesBytes } from './result-size.ts';
import { type FoundLines, searchFailure, searchLines, searchTimeoutMs } from './search.ts';

const maxMatches = 100;
const maxLineLength = 500;

const grepArguments = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .describe('an extended regular expression (grep -E), searched line by line'),
  path: z
    .string()
    .min(1)
    .default('.')
    .describe('file or folder to search, relative to the workspace root'),
  glob: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe('only files whose name matches, such as *.ts'),
});

const grepNote = ({ more, result }: FoundLines, shown: number): string => {
  if (result.timedOut)
    return `\n[stopped after ${searchTimeoutMs / 1_000} s with ${shown} matches; search a smaller folder]`;
  return more ? `\n[only the first ${shown} matches; make the pattern or the path narrower]` : '';
};

const grepResult = (found: FoundLines): ToolResult => {
  const failure = searchFailure(found, 1);
  if (failure !== null) return { ok: false, text: failure };
  if (found.lines.length === 0 && !found.result.timedOut) return { ok: true, text: 'no matches' };

  const lines = found.lines.map((line) => line.replace(/^\.\//, ''));
  const { text, count } = keepWholeLines(lines, maxLinesBytes);
  const note = grepNote({ ...found, more: found.more || count < lines.length }, count);
  return { ok: !found.result.timedOut, text: `${text}${note}` };
};

/** A child process runs the pattern of the model, so that a slow one cannot block our thread. */
export const grepTool: Tool<z.infer<typeof grepArguments>> = {
  name: 'grep',
  description: `Searches the contents of text files and returns path:line:text, at most ${maxMatches} matches. Skips .git and node_modules.`,
  schema: grepArguments,
  run: async ({ pattern, path, glob }, context) => {
    const place = await locate(context.root, path, 'read');
    if (!place.ok) return place;
    const includes = glob === undefined ? [] : expandBraces(glob).map((one) => `--include=${one}`);
    const skips = ['--exclude-dir=.git', '--exclude-dir=node_modules', '--devices=skip'];
    return grepResult(
      await searchLines({
        argv: ['grep', '-rnHIEs', ...skips, ...includes, '-e', pattern, '--', place.value.path],
        context,

        maxLines: maxMatches,
        maxLineLength,
      }),
    );
  },
};
