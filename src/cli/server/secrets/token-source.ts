import { messageOf } from '../../../machines/message-of.ts';
import { onceATurn } from '../../config/once-a-turn.ts';
import type { TokenFile } from './token-file.ts';

/**
 * The token of a running server. A rotated token takes effect at once; a bad file changes nothing.
 */
export interface TokenSource {
  current(): string;
  /**
   * Every token since the start, for the redactor, which asks for each text: a rotated one is in it
   * from the next turn of the event loop on, or once `current` gave it.
   */
  all(): readonly string[];
  /** One sentence about a bad token file, or null. */
  problem(): string | null;
}

const remembered = 64;

const tokenStamp = ({ path, isShared, stat }: TokenFile): string => {
  const found = stat();
  const remedy = isShared ? 'put it there again' : "'agent token' makes a new one";
  if (found === null) throw new Error(`the token file ${path} is missing; ${remedy}`);
  return `${found.ctimeMs}/${found.ino}`;
};

/** @throws PrivateFileError, StateFolderError, ConfigError when there is no good token at the start */
export const createTokenSource = (file: TokenFile): TokenSource => {
  let tokens: readonly string[] = [file.readAtStart()];
  let stamp = '';
  let problem: string | null = null;
  const look = (): void => {
    try {
      const now = tokenStamp(file);
      if (now === stamp) return;
      const token = file.read();
      if (token !== tokens.at(-1)) tokens = [...tokens, token].slice(-remembered);
      stamp = now;
      problem = null;
    } catch (error) {
      stamp = '';
      problem = `${messageOf(error)}; the server keeps the previous token`;
    }
  };
  const lookAgain = onceATurn(look);
  return {
    current: () => {
      look();
      return tokens.at(-1) ?? '';
    },
    all: () => {
      lookAgain();
      return tokens;
    },
    problem: () => {
      look();
      return problem;
    },
  };
};
