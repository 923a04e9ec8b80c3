import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { readRegular } from '../../../actors/files/regular-file.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { ConfigError } from '../../config/config-error.ts';
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
