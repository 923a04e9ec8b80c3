import { closeSync, constants, lstatSync, readdirSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openRegular } from '../files/regular-file.ts';

/**
 * The whole output of one command. It becomes a file only when it is more than the model was shown.
 */
export interface OutputFile {
  /** Never throws: a command does not fail over its log. */
  push(text: string): void;
  /** @returns the file (absolute) and whether it has the whole output; null without a file */
  close(): { readonly path: string; readonly isWhole: boolean } | null;
}

export interface OutputFileOptions {
  readonly folder: string;
  /** Called before the first write. @throws when the folder is not a real one */
  readonly makeFolder: () => void;
  /** File names of one attempt begin with it; together they have a size limit. */
  readonly prefix: string;
  readonly name: string;
  /** Removes secrets from a text; gets whole lines where possible. */
  readonly redact: (text: string) => string;
  /** Smaller output gets no file. */
  readonly fromBytes: number;
}

export const outputFileBytesAtMost = 4 * 1024 * 1024;
const attemptOutputBytesAtMost = 32 * 1024 * 1024;
const heldLineAtMost = 64 * 1024;
/** A cut line holds back this many characters: no secret is longer. */
const secretAtMost = 8 * 1024;
const cutNote = '\n[further output is not saved]\n';

const keepOutOfGit = (folder: string): void => {
  const ignore = join(folder, '.gitignore');
  if (lstatSync(ignore, { throwIfNoEntry: false }) === undefined)
    writeFileSync(ignore, '*\n', { flag: 'wx', mode: 0o600 });
};

const totalSize = (folder: string, prefix: string): number =>
  readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .reduce((sum, name) => sum + lstatSync(join(folder, name)).size, 0);

const { O_WRONLY, O_CREAT, O_TRUNC } = constants;

export const createOutputFile = ({
  folder,
  prefix,
  name,
  ...options
}: OutputFileOptions): OutputFile => {
  const path = join(folder, name);
  let held = '';
  let heldBytes = 0;
  let file: number | null = null;
  let written = 0;
  let isOver = false;

  const open = (): number => {
    options.makeFolder();
    if (totalSize(folder, prefix) > attemptOutputBytesAtMost - outputFileBytesAtMost)
      throw new Error('the logs are full');
    keepOutOfGit(folder);
    return openRegular(path, O_WRONLY | O_CREAT | O_TRUNC);
  };

  const write = (text: string): void => {
    if (file === null) return;
    const data = Buffer.from(text);
    const room = outputFileBytesAtMost - cutNote.length - written;
    isOver = data.length > room;
    written += writeSync(
      file,
      isOver ? Buffer.concat([data.subarray(0, room), Buffer.from(cutNote)]) : data,
    );
  };

  /** Takes whole lines; of a very long line all but its end, so that no secret is split in two. */
  const takeLines = (): string => {
    const end = held.lastIndexOf('\n') + 1;
    if (end === 0 && held.length <= heldLineAtMost) return '';
    const ready = options.redact(end === 0 ? held : held.slice(0, end));
    if (end > 0) {
      held = held.slice(end);
      return ready;
    }
    held = ready.slice(-secretAtMost);
    return ready.slice(0, -secretAtMost);
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
      attempt(() => write(options.redact(held)));
      if (file === null) return null;
      closeSync(file);
      return { path, isWhole: !isOver };
    },
  };
};
