import { z } from 'zod';
import {
  allImageBytesAtMost,
  digestOf,
  type ImageType,
  imageProblem,
  imagesAtMost,
  imageTypeOf,
} from '../files/image.ts';
import { keepHead, keepWholeLines } from '../process/head-tail-buffer.ts';
import { refusePath } from './confine.ts';
import { readInside } from './confined-files.ts';
import { maxLinesBytes, type OwnTool, type ToolContext, type ToolResult } from './port.ts';

const maxLines = 2_000;
const binarySampleBytes = 8_192;
const byteOrderMark = Buffer.from('\uFEFF');
const lineFeed = 0x0a;

const readArguments = z.strictObject({
  path: z.string().min(1).describe('file path, relative to the workspace root'),
  offset: z.int().min(1).default(1).describe('the first line to read, counted from 1'),
  limit: z.int().min(1).default(maxLines).describe(`how many lines to read, at most ${maxLines}`),
});
type ReadArguments = z.infer<typeof readArguments>;

interface FileLines {
  /** Those from `offset` on, at most `limit`. */
  readonly lines: readonly string[];
  readonly total: number;
}

/** Only the lines that are asked for are made: a file may have millions. */
const fileLines = (bytes: Buffer, offset: number, limit: number): FileLines => {
  const lines: string[] = [];
  let total = 0;
  let from = bytes.subarray(0, 3).equals(byteOrderMark) ? 3 : 0;
  while (from < bytes.length) {
    const end = bytes.indexOf(lineFeed, from);
    const to = end < 0 ? bytes.length : end;
    total += 1;
    if (total >= offset && lines.length < limit)
      lines.push(bytes.toString('utf8', from, to).replace(/\r$/, end < 0 ? '$&' : ''));
    from = to + 1;
  }
  return { lines, total };
};

const longLine = (line: string, number: number): ToolResult => {
  const shown = keepHead(line, maxLinesBytes);
  const size = Buffer.byteLength(line);
  const note = `[line ${number} has ${size} bytes; only its beginning is shown; continue with offset ${number + 1}]`;
  return { ok: true, text: `${shown}\n${note}` };
};

const pageResult = ({ lines, total }: FileLines, { path, offset }: ReadArguments): ToolResult => {
  if (total === 0) return { ok: true, text: '(the file is empty)' };
  const [first] = lines;
  if (first === undefined) return refusePath(path, `has only ${total} lines`);

  const { text, count } = keepWholeLines(lines, maxLinesBytes);
  if (count === 0) return longLine(first, offset);
  const last = offset + count - 1;
  if (offset === 1 && last === total) return { ok: true, text };
  const how = last < total ? `; continue with offset ${last + 1}` : '; this is the end of the file';
  return { ok: true, text: `${text}\n[lines ${offset}-${last} of ${total}${how}]` };
};

const showImage = async (
  path: string,
  file: Buffer,
  mediaType: ImageType,
  keepImage: ToolContext['keepImage'],
): Promise<ToolResult> => {
  const problem = imageProblem(file);
  if (problem !== null) return refusePath(path, problem);
  const image = { digest: digestOf(file), mediaType };
  const kept = await keepImage?.({ ...image, data: file.toString('base64') }, file.length);
  return kept === true
    ? { ok: true, text: `[${path}: an image, ${file.length} bytes]`, images: [image] }
    : refusePath(
        path,
        `is an image, and you have seen as many as an attempt may read (${imagesAtMost}, together ${allImageBytesAtMost} bytes)`,
      );
};

export const readTool: OwnTool<ReadArguments> = {
  name: 'read',
  files: 'reads',
  isRepeatable: true,
  description: `Reads a text file: at most ${maxLines} lines or 16 KiB of whole lines; says how to continue when there is more. Shows an image (PNG, JPEG, WebP).`,
  schema: readArguments,
  run: async (args, { root, keepImage }) => {
    const file = await readInside(root, args.path);
    if (!file.ok) return file;
    const image = imageTypeOf(file.value);
    if (image !== null) return showImage(args.path, file.value, image, keepImage);
    if (file.value.subarray(0, binarySampleBytes).includes(0))
      return refusePath(args.path, `is a binary file (${file.value.length} bytes)`);
    const lines = fileLines(file.value, args.offset, Math.min(args.limit, maxLines));
    return pageResult(lines, args);
  },
};
