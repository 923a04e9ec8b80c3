import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';

/** Takes what is done at the end of a test, the last first; of a file: `endOfFile()`. */
export type AtEnd = (work: () => void | Promise<void>) => void;

/** Call it at the top of a file, for what its tests share. */
export const endOfFile = (): AtEnd => {
  const all: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const work of all.reverse()) await work();
  });
  return (work) => void all.push(work);
};

/** A process that was ended may still write its last file. */
const patience = { maxRetries: 10, retryDelay: 50 };

/** A new folder, removed after the test. */
export const temporaryFolder = (atEnd: AtEnd = onTestFinished): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-test-')));
  atEnd(() => rmSync(folder, { recursive: true, force: true, ...patience }));
  return folder;
};
