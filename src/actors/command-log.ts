import { closeSync, constants, openSync, readdirSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderDurably } from './durable-folder.ts';

/** The whole output of one command, kept as a file only when it is more than somebody was shown of it. */
export interface CommandLog {
  /** Never throws: a command does not fail over its log. */
  push(text: string): void;
  /** @returns the file, absolute, or null when there is none */
  close(): string | null;
}

export interface CommandLogOptions {
  /** Absolute; made when it is needed. */
  readonly folder: string;
  /** What the logs of one attempt begin with: together they have a limit. */
  readonly prefix: string;
  readonly name: string;
  /** Takes secrets out of a text; it is given whole lines where it can be. */
  readonly redact: (text: string) => string;
  /** Up to so many bytes are not worth a file. */
  readonly fromBytes: number;
  /** Called before the file is made. @throws when the folder is not what it should be */
  readonly check?: () => void;
}

export const logBytesAtMost = 4 * 1024 * 1024;
const allLogsBytesAtMost = 32 * 1024 * 1024;
const longestLine = 64 * 1024;
const cut = '\n[further output is not kept]\n';

const sizeOfLogs = (folder: string, prefix: string): number =>
  readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;

export const createCommandLog = ({ folder, prefix, name, ...options }: CommandLogOptions): CommandLog => {
  const path = join(folder, name);
  let held = '';
  let heldBytes = 0;
  let file: number | null = null;
  let written = 0;
  let isOver = false;

  const open = (): number => {
    makeFolderDurably(folder);
    options.check?.();
    if (sizeOfLogs(folder, prefix) > allLogsBytesAtMost - logBytesAtMost) throw new Error('the logs are full');
    return openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  };

  const write = (text: string): void => {
    if (isOver || file === null) return;
    const data = Buffer.from(options.redact(text));
    const room = logBytesAtMost - cut.length - written;
    isOver = data.length > room;
    written += writeSync(file, isOver ? Buffer.concat([data.subarray(0, room), Buffer.from(cut)]) : data);
  };

  /** Whole lines: a secret must not hide in two pieces. */
  const takeLines = (): string => {
    const end = held.length > longestLine ? held.length : held.lastIndexOf('\n') + 1;
    const lines = held.slice(0, end);
    held = held.slice(end);
    return lines;
  };

  const attempt = (work: () => void): void => {
    if (isOver) return;
    try {
      work();
    } catch {
      isOver = true;
    }
  };

  return {
    push: (text) =>
      attempt(() => {
        held += text;
        heldBytes += Buffer.byteLength(text);
        if (file === null && heldBytes <= options.fromBytes) return;
        file ??= open();
        write(takeLines());
      }),
    close: () => {
      attempt(() => write(held));
      if (file === null) return null;
      closeSync(file);
      return path;
    },
  };
};
