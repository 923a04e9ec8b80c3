import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { readRegular } from '../../../actors/files/regular-file.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { ConfigError } from '../../config/config-error.ts';
import { onceATurn } from '../../config/once-a-turn.ts';
import { type Project, stateFiles } from '../../config/places/project.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import { isOwnUid, readExistingToken, readToken } from './private-files.ts';

/** A place of the token of a server. */
export interface TokenFile {
  readonly path: string;
  /** Several servers use it, so none of them writes it. */
  readonly isShared: boolean;
  /** At the start of a server. @throws PrivateFileError, StateFolderError, ConfigError */
  readAtStart(): string;
  /** @throws PrivateFileError, ConfigError, system errors */
  read(): string;
  /** Null when the file is missing. */
  stat(): Stats | null;
}

const sharedBytesAtMost = 4_096;
/** The gate takes no longer one, see `bearerToken`. */
const sharedToken = /^[A-Za-z0-9_-]{32,256}$/;
const key = 'server.token_file';

/** A file of root may be readable by our group: secrets of Kubernetes and of systemd are so. */
const openToOthers = ({ uid, mode }: Stats): boolean =>
  (mode & (isOwnUid(uid) ? 0o077 : 0o027)) !== 0;

/** @throws ConfigError */
export const readSharedToken = (path: string): string => {
  const refuse = (why: string): never => {
    throw new ConfigError(`${key}: ${path} ${why}`);
  };
  const readText = (): string => {
    try {
      // Secrets of Kubernetes are links.
      const file = realpathSync(path);
      const stat = statSync(file);
      if (!isOwnUid(stat.uid) && stat.uid !== 0) return refuse('belongs to somebody else');
      if (openToOthers(stat)) return refuse(`is readable by others; run: chmod 600 ${path}`);
      return readRegular(file, sharedBytesAtMost).trim();
    } catch (cause) {
      if (cause instanceof ConfigError) throw cause;
      return refuse(`cannot be read (${messageOf(cause)})`);
    }
  };
  const text = readText();
  const how = `make one: (umask 077; openssl rand -hex 32 > ${path})`;
  if (text === '') return refuse(`is empty; ${how}`);
  if (sharedToken.test(text)) return text;
  return refuse(
    `must hold one token of 32 to 256 letters, digits, - and _ (it has ${text.length} characters); ${how}`,
  );
};

export const sharedTokenFile = (path: string): TokenFile => ({
  path,
  isShared: true,
  readAtStart: () => readSharedToken(path),
  read: () => readSharedToken(path),
  stat: () => statSync(path, { throwIfNoEntry: false }) ?? null,
});

export const ownTokenFile = (path: string): TokenFile => ({
  path,
  isShared: false,
  readAtStart: () => readToken(path),
  read: () => readExistingToken(path),
  stat: () => lstatSync(path, { throwIfNoEntry: false }) ?? null,
});

/** `shared`: the file that the configuration, or the server itself, names. */
export const tokenFileIn = (stateDir: string, shared: string | undefined): TokenFile =>
  shared === undefined ? ownTokenFile(stateFiles(stateDir).token) : sharedTokenFile(shared);

export const tokenFileFor = ({ server }: Config, { stateDir }: Project): TokenFile =>
  tokenFileIn(stateDir, server.token_file);

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
