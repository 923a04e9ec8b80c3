import {
  closeSync,
  constants,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import {
  allImageBytesAtMost,
  imageBytesAtMost,
  imageProblem,
  imagesAtMost,
} from '../../actors/files/image.ts';
import { mebibytesText } from '../../machines/bytes.ts';
import { plural } from '../../machines/plural.ts';
import { hasTerminal, openEditor } from '../output/editor.ts';
import { fileProblem } from '../output/file-problem.ts';
import { UsageError } from '../words/usage-error.ts';

const scissors = '# ------------------------ >8 ------------------------';
const editorAdvice = [
  scissors,
  '# Write the task above this line. The first line is its title.',
  '# If you leave it empty, nothing happens.',
];

/** @throws UsageError when it cannot be read */
const readTaskText = (path: string): string => {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new UsageError(
      `${path === '-' ? 'standard input' : path} cannot be read: ${fileProblem(error)}`,
    );
  }
};

const requireText = (text: string): string => {
  const trimmed = text.trim();
  if (trimmed === '') throw new UsageError('the text is empty, so nothing was done');
  return trimmed;
};

/** Opens an editor on the text. @throws UsageError when it fails, or leaves no text */
export const editText = (before: string, env: NodeJS.ProcessEnv): string => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-text-'));
  try {
    const file = join(folder, 'TASK.md');
    writeFileSync(file, [before, '', ...editorAdvice, ''].join('\n'), { mode: 0o600 });
    openEditor(file, env);
    return requireText(readFileSync(file, 'utf8').split(scissors, 1)[0] ?? '');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

export interface TextSource {
  /** A word of the command line; `-` for standard input. */
  readonly given: string | undefined;
  /** The value of `--file`. */
  readonly file: string | undefined;
}

/**
 * Null when nothing was given and no terminal is there to ask. @throws UsageError for two sources,
 * or a text that is empty
 */
export const textFrom = ({ given, file }: TextSource, env: NodeJS.ProcessEnv): string | null => {
  if (given !== undefined && file !== undefined)
    throw new UsageError('give the text or --file, not both');
  if (file !== undefined) return requireText(readTaskText(file));
  if (given === '-') return requireText(readTaskText('-'));
  if (given !== undefined) return given;
  return hasTerminal() ? editText('', env) : null;
};

/**
 * Null where the first line of a text can be its title: it has a letter or a digit. Else the name of
 * its file, or the first line that has one.
 */
export const titleInstead = (text: string, file: string | undefined): string | null => {
  const lines = text.split('\n').map((line) => line.trim());
  const hasWord = (line: string): boolean => /[\p{L}\p{N}]/u.test(line);
  if (hasWord(lines[0] ?? '')) return null;
  const isNamed = file !== undefined && file !== '-';
  return isNamed ? basename(file) : (lines.find(hasWord) ?? null);
};

/** The first line and the rest. */
export const splitText = (text: string): { readonly title: string; readonly rest: string } => {
  const [title = '', ...rest] = text.split('\n');
  return { title: title.trim(), rest: rest.join('\n').trim() };
};

export interface GivenImage {
  readonly name: string;
  readonly bytes: Buffer;
}

const nameLength = 200;
const nameOf = (path: string): string =>
  [...stripVTControlCharacters(basename(path)).replaceAll(/\p{C}/gu, '')]
    .slice(-nameLength)
    .join('');

const refused = (path: string, problem: string): UsageError =>
  new UsageError(`${path} cannot be attached: it ${problem}; no task was made`);

/** Never waits for a pipe. @throws UsageError */
const readImage = (path: string, cwd: string): GivenImage => {
  let file: number | null = null;
  try {
    file = openSync(resolve(cwd, path), constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file);
    if (stat.isDirectory()) throw refused(path, 'is a folder');
    if (!stat.isFile()) throw refused(path, 'is no regular file');
    if (stat.size > imageBytesAtMost)
      throw refused(
        path,
        `has ${mebibytesText(stat.size)}, and an image may have ${mebibytesText(imageBytesAtMost)}`,
      );
    const bytes = readFileSync(file);
    const problem = imageProblem(bytes);
    if (problem !== null) throw refused(path, problem);
    return { name: nameOf(path), bytes };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} cannot be attached: ${fileProblem(error)}; no task was made`);
  } finally {
    if (file !== null) closeSync(file);
  }
};

/** @throws UsageError for a file that is no image, and for too many */
export const readImages = (paths: readonly string[], cwd: string): readonly GivenImage[] => {
  if (paths.length > imagesAtMost)
    throw new UsageError(`a task has at most ${plural(imagesAtMost, 'image')}; no task was made`);
  const images = paths.map((path) => readImage(path, cwd));
  const bytes = images.reduce((sum, image) => sum + image.bytes.length, 0);
  if (bytes > allImageBytesAtMost)
    throw new UsageError(
      `the images have ${mebibytesText(bytes)}, and those of a task may have ${mebibytesText(allImageBytesAtMost)} together; no task was made`,
    );
  return images;
};
