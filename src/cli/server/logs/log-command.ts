import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';
import type { CommandContext } from '../../client/command-context.ts';
import { stateFiles } from '../../config/places/project.ts';
import { exitCodes } from '../../output/exit-codes.ts';
import { UsageError } from '../../words/usage-error.ts';
import { logText } from './logger.ts';

const linesByDefault = 100;
const blockBytes = 64 * 1024;
const lineFeedByte = 0x0a;
const logPollMs = 200;

const readAt = (file: number, from: number, to: number): Buffer => {
  const block = Buffer.alloc(to - from);
  return block.subarray(0, readSync(file, block, 0, block.length, from));
};

/** Where the last lines begin; a line without an end counts. */
const startOfLast = (file: number, lines: number): number => {
  const { size } = fstatSync(file);
  if (lines === 0) return size;
  let left = lines;
  for (let to = size; to > 0; to -= blockBytes) {
    const from = Math.max(0, to - blockBytes);
    const block = readAt(file, from, to);
    for (let at = block.length - 1; at >= 0; at -= 1) {
      if (block[at] !== lineFeedByte || from + at === size - 1) continue;
      left -= 1;
      if (left === 0) return from + at + 1;
    }
  }
  return 0;
};

/** Prints whole lines, on a terminal as words; keeps the rest until it is complete. */
const createLinePrinter = ({ io, json }: CommandContext) => {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const printLine = (line: string): void => {
    if (json) io.json({ line });
    else io.out((io.width === null ? null : logText(line)) ?? line);
  };
  return {
    take: (bytes: Buffer): void => {
      const lines = `${rest}${decoder.write(bytes)}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) printLine(line);
    },
    end: (): void => {
      if (rest !== '') printLine(rest);
      rest = '';
    },
  };
};

type LinePrinter = ReturnType<typeof createLinePrinter>;

/** @returns where the next reading begins */
const printFrom = (file: number, from: number, printer: LinePrinter): number => {
  let at = from;
  for (;;) {
    const bytes = readAt(file, at, at + blockBytes);
    if (bytes.length === 0) return at;
    printer.take(bytes);
    at += bytes.length;
  }
};

/** A server that starts may have put a new file in its place. */
const isReplaced = (file: number, path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(file).ino;

const followFile = async (path: string, begun: number, from: number, printer: LinePrinter) => {
  let file = begun;
  for (let at = from; ; await delay(logPollMs)) {
    at = printFrom(file, at, printer);
    if (!isReplaced(file, path)) continue;
    const next = openIfAny(path);
    if (next === null) continue;
    printFrom(file, at, printer);
    printer.end();
    closeSync(file);
    file = next;
    at = 0;
  }
};

const openIfAny = (path: string): number | null => {
  try {
    return openSync(path, 'r');
  } catch {
    return null;
  }
};

const lineCount = (lines: number | undefined): number => {
  if (lines === undefined) return linesByDefault;
  if (Number.isSafeInteger(lines) && lines >= 0) return lines;
  throw new UsageError(`--lines needs a whole number from 0; ${lines} is none`);
};

/** The end of the log of this project's server, also after its stop. Exit code 6 without a log. */
export const showServerLog = async (
  context: CommandContext,
  { follow, lines }: { readonly follow: boolean | undefined; readonly lines: number | undefined },
): Promise<number> => {
  const { project, io, json } = context;
  const count = lineCount(lines);
  const { log } = stateFiles(project.stateDir);
  const file = openIfAny(log);
  if (file === null) {
    if (json) io.json({ log: null });
    io.err(`agent: no server has written a log for ${project.root} (${log})`);
    return exitCodes.unavailable;
  }
  const printer = createLinePrinter(context);
  const at = printFrom(file, startOfLast(file, count), printer);
  if (follow === true) await followFile(log, file, at, printer);
  printer.end();
  closeSync(file);
  return exitCodes.done;
};
