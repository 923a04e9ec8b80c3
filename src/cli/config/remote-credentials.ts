import { lstatSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readRegular } from '../../actors/files/regular-file.ts';
import { onceATurn } from './once-a-turn.ts';
import { gitDirOf } from './places/project-root.ts';

const gitConfigBytesAtMost = 1024 * 1024;
/** A user name alone in a URL is no secret, but a long one is a token. */
const tokenLength = 20;

const readGitText = (path: string): string | null => {
  try {
    return readRegular(path, gitConfigBytesAtMost);
  } catch {
    return null;
  }
};

const gitConfigOf = (root: string): string => {
  const gitDir = gitDirOf(root) ?? join(root, '.git');
  const common = readGitText(join(gitDir, 'commondir'))?.trim();
  return join(common === undefined ? gitDir : resolve(gitDir, common), 'config');
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const gitConfigStamp = (path: string): string => {
  try {
    const { ctimeMs, ino } = lstatSync(path);
    return `${ctimeMs}/${ino}`;
  } catch {
    return 'missing';
  }
};

/** `secrets` are the texts to redact. */
export interface FoundCredential {
  readonly host: string;
  readonly secrets: readonly string[];
}

const inUrls = (text: string): readonly FoundCredential[] =>
  [...text.matchAll(/(?<=[a-z0-9+.-]):\/\/([^\s/@"']+)@([^\s/"']*)/gi)].flatMap(
    ([, user = '', host = '']) => {
      const [name = '', ...rest] = user.split(':');
      const password = rest.join(':');
      const secret = password === '' && name.length >= tokenLength ? name : password;
      return secret === '' ? [] : [{ host, secrets: [secret, decoded(secret), `//${user}@`] }];
    },
  );

const inHeaders = (text: string): readonly FoundCredential[] =>
  [...text.matchAll(/extraheader\s*=\s*"?[\w-]+:\s*(?:basic\s+|bearer\s+)?([^\s"]+)/gi)].map(
    ([, value = '']) => ({
      host: 'http.extraheader',
      secrets: [value],
    }),
  );

/** Reads the project's git configuration as text; runs no git. */
export const remoteCredentials = (root: string): readonly FoundCredential[] => {
  const text = readGitText(gitConfigOf(root)) ?? '';
  return [...inUrls(text), ...inHeaders(text)];
};

/** Reads the file again after a change, once in each turn of the event loop. */
export const remoteSecrets = (root: string): (() => readonly string[]) => {
  const path = gitConfigOf(root);
  let stamp = '';
  let secrets: readonly string[] = [];
  const look = onceATurn(() => {
    const now = gitConfigStamp(path);
    // An earlier secret may still be shown somewhere.
    if (now !== stamp)
      secrets = [
        ...new Set([...secrets, ...remoteCredentials(root).flatMap((each) => each.secrets)]),
      ].slice(-64);
    stamp = now;
  });
  return () => {
    look();
    return secrets;
  };
};
