import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import {
  allImageBytesAtMost,
  imageBytesAtMost,
  imageProblem,
  imagesAtMost,
} from '../../actors/files/image.ts';
import { mebibytesText } from '../../machines/bytes.ts';
import { plural } from '../../machines/plural.ts';
import { fileProblem } from '../output/file-problem.ts';
import { UsageError } from '../words/usage-error.ts';

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
