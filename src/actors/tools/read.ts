import { z } from 'zod';
import { keepHead, keepWholeLines } from '../process/head-tail-buffer.ts';
import { refusePath } from './confine.ts';
import { readInside } from './confined-files.ts';
import type { Tool, ToolResult } from './port.ts';
import { maxLinesBytes } from './result-size.ts';

const maxLines = 2_000;
const binarySampleBytes = 8_192;

const readArguments = z.strictObject({
  path: z.string().min(1).describe('file path, relative to the workspace root'),
  offset: z.int().min(1).default(1).describe('the first line to read, counted from 1'),
  limit: z.int().min(1).default(maxLines).describe(`how many lines to read, at most ${maxLines}`),
});
type ReadArguments = z.infer<typeof readArguments>;

const fileLines = (text: string): readonly string[] => {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
};

const longLine = (line: string, number: number): ToolResult => {
  const shown = keepHead(line, maxLinesBytes);
  const size = Buffer.byteLength(line);
  const note = `[line ${number} has ${size} bytes; only its beginning is shown; continue with offset ${number + 1}]`;
  return { ok: true, text: `${shown}\n${note}` };
};

const pageResult = (
  lines: readonly string[],
  { path, offset, limit }: ReadArguments,
): ToolResult => {
  if (lines.length === 0) return { ok: true, text: '(the file is empty)' };
  const [first, ...rest] = lines.slice(offset - 1, offset - 1 + Math.min(limit, maxLines));
  if (first === undefined) return refusePath(path, `has only ${lines.length} lines`);

  const { text, count } = keepWholeLines([first, ...rest], maxLinesBytes);
  if (count === 0) return longLine(first, offset);
  const last = offset + count - 1;
  if (offset === 1 && last === lines.length) return { ok: true, text };
  const how =
    last < lines.length ? `; continue with offset ${last + 1}` : '; this is the end of the file';
  return { ok: true, text: `${text}\n[lines ${offset}-${last} of ${lines.length}${how}]` };
};

export const readTool: Tool<ReadArguments> = {
  name: 'read',
  description: `Reads a text file: at most ${maxLines} lines or 16 KiB of whole lines; says how to continue when there is more.`,
  schema: readArguments,
  run: async (args, { root }) => {
    const file = await readInside(root, args.path);
    if (!file.ok) return file;
    if (file.value.subarray(0, binarySampleBytes).includes(0))
      return refusePath(args.path, `is a binary file (${file.value.length} bytes)`);
    return pageResult(fileLines(file.value.toString()), args);
  },
};
