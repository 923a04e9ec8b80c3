import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { keepWholeLines } from '../process/head-tail-buffer.ts';
import { type InsidePath, locate, refuseForError, refusePath } from './confine.ts';
import { findTests } from './glob.ts';
import { type FoundLines, searchFailure, searchLines, searchTimeoutMs } from './grep.ts';
import { maxLinesBytes, type OwnTool, type ToolContext, type ToolResult } from './port.ts';

const maxShown = 1_000;
/** Sorting needs all names; beyond this many the list is incomplete and says so. */
const maxCollected = 50_000;
const maxNameLength = 4_096;

const findArguments = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(1_000)
    .describe(
      'a glob: *.ts matches names in all folders; with a slash it matches paths below `path`: src/**/*.test.ts',
    ),
  path: z.string().min(1).default('.').describe('folder to search, relative to the workspace root'),
});

const pathFromRoot = (place: InsidePath, line: string): string =>
  [...place.parts, line.replace(/^\.\//, '')].join('/');

const findNote = ({ lines, more, result }: FoundLines, shown: number): string => {
  if (result.timedOut)
    return `\n[stopped after ${searchTimeoutMs / 1_000} s; ${shown} files are shown]`;
  if (shown === lines.length && !more) return '';
  return `\n[the first ${shown} of ${more ? 'more than ' : ''}${lines.length} files; make the pattern or the path narrower]`;
};

const findResult = (found: FoundLines, place: InsidePath): ToolResult => {
  const failure = searchFailure(found, 0);
  if (failure !== null) return { ok: false, text: failure };
  if (found.lines.length === 0 && !found.result.timedOut) return { ok: true, text: 'no files' };

  const names = found.lines.map((line) => pathFromRoot(place, line)).sort();
  const { text, count } = keepWholeLines(names.slice(0, maxShown), maxLinesBytes);
  return { ok: !found.result.timedOut, text: `${text}${findNote(found, count)}` };
};

const runFind = (pattern: string, place: InsidePath, context: ToolContext): Promise<FoundLines> =>
  searchLines({
    argv: [
      ...(['/bin/sh', '-c', 'cd -- "$0" && exec "$@"', place.path] as const),
      'find',
      '.',
      '(',
      '-name',
      '.git',
      '-o',
      '-name',
      'node_modules',
      ')',
      '-prune',
      '-o',
      '(',
      '-type',
      'f',
      '-o',
      '-type',
      'l',
      ')',
      '(',
      ...findTests(pattern),
      ')',
      '-print',
    ],
    context,

    maxLines: maxCollected,
    maxLineLength: maxNameLength,
  });

export const findTool: OwnTool<z.infer<typeof findArguments>> = {
  name: 'find',
  files: 'reads',
  isRepeatable: true,
  description: `Lists the files whose name or path matches a glob, sorted, at most ${maxShown}. Skips .git and node_modules.`,
  schema: findArguments,
  run: async ({ pattern, path }, context) => {
    const located = await locate(context.root, path, 'read');
    if (!located.ok) return located;
    try {
      const isFolder = (await stat(join(context.root, located.value.path))).isDirectory();
      if (!isFolder) return refusePath(path, 'is not a folder');
    } catch (error) {
      return refuseForError(path, error);
    }
    return findResult(await runFind(pattern, located.value, context), located.value);
  },
};
