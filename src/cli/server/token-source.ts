import { lstatSync } from 'node:fs';
import { messageOf } from '../../machines/message-of.ts';
import { readExistingToken, readToken } from './private-files.ts';

/**
 * The token of a running server. A rotated token takes effect at once; a bad file changes nothing.
 */
export interface TokenSource {
  current(): string;
  /** Every token since the start, for the redactor. */
  all(): readonly string[];
  /** One sentence about a bad token file, or null. */
  problem(): string | null;
}

const remembered = 64;

const tokenStamp = (path: string): string => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw new Error(`the token file ${path} is missing; 'agent token' makes a new one`);
  return `${found.ctimeMs}/${found.ino}`;
};

/** @throws PrivateFileError, StateFolderError when there is no good token at the start */
export const createTokenSource = (path: string): TokenSource => {
  let tokens: readonly string[] = [readToken(path)];
  let stamp = '';
  let problem: string | null = null;
  const look = (): void => {
    try {
      const now = tokenStamp(path);
      if (now === stamp) return;
      const token = readExistingToken(path);
      if (token !== tokens.at(-1)) tokens = [...tokens, token].slice(-remembered);
      stamp = now;
      problem = null;
    } catch (error) {
      stamp = '';
      problem = `${messageOf(error)}; the server keeps the previous token`;
    }
  };
  return {
    current: () => {
      look();
      return tokens.at(-1) ?? '';
    },
    all: () => {
      look();
      return tokens;
    },
    problem: () => {
      look();
      return problem;
    },
  };
};
