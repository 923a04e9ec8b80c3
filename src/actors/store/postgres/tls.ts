import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { messageOf } from '../../../machines/message-of.ts';
import { StoreError } from '../port.ts';

const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type TlsMode = (typeof modes)[number];

export interface TlsSettings {
  /** As libpq's sslmode. */
  readonly mode: TlsMode;
  /** `system`: what this machine trusts; null: nothing is checked. */
  readonly rootFile: string | null;
  readonly certificateFile: string | null;
  readonly keyFile: string | null;
}

type Given = Partial<Record<'sslmode' | 'sslrootcert' | 'sslcert' | 'sslkey', string>>;

const ofUser = (name: string): string | null => {
  const file = join(homedir(), '.postgresql', name);
  return existsSync(file) ? file : null;
};

/** @throws what `invalid` makes of a problem */
export const tlsSettings = (
  given: Given,
  env: Readonly<Record<string, string | undefined>>,
  invalid: (problem: string) => Error,
): TlsSettings => {
  const rootFile = given.sslrootcert ?? env['PGSSLROOTCERT'] ?? ofUser('root.crt');
  const asked = given.sslmode ?? env['PGSSLMODE'];
  const mode = modes.find((each) => each === (asked ?? 'prefer'));
  if (mode === undefined) throw invalid(`sslmode is none of ${modes.join(', ')}`);
  const verifies = mode.startsWith('verify');
  if (verifies && rootFile === null)
    throw invalid(`sslmode=${mode} needs sslrootcert, a file with certificates or "system"`);
  return {
    // So that a file of certificates that is there is never left unused.
    mode: mode === 'require' && rootFile !== null ? 'verify-ca' : mode,
    rootFile,
    certificateFile: given.sslcert ?? env['PGSSLCERT'] ?? ofUser('postgresql.crt'),
    keyFile: given.sslkey ?? env['PGSSLKEY'] ?? ofUser('postgresql.key'),
  };
};

const tlsFileText = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StoreError(
      `the file ${file} of the store's TLS cannot be read: ${messageOf(cause)}`,
      {
        cause,
      },
    );
  }
};

const optionsFor = (settings: TlsSettings): ConnectionOptions => {
  const { mode, rootFile, certificateFile, keyFile } = settings;
  const isSystem = rootFile === 'system';
  return {
    rejectUnauthorized: mode.startsWith('verify'),
    ...(rootFile === null || isSystem ? {} : { ca: tlsFileText(rootFile) }),
    cert: certificateFile === null ? undefined : tlsFileText(certificateFile),
    key: keyFile === null ? undefined : tlsFileText(keyFile),
    // Names are not compared, as libpq does not; those that the system trusts are too many for it.
    ...(mode === 'verify-ca' && !isSystem ? { checkServerIdentity: () => undefined } : {}),
  };
};

/** The ways to connect, in the order in which they are tried. @throws StoreError */
export const tlsTries = (
  settings: TlsSettings,
  isSocket: boolean,
): readonly (ConnectionOptions | false)[] => {
  if (isSocket || settings.mode === 'disable') return [false];
  const encrypted = optionsFor(settings);
  if (settings.mode === 'allow') return [false, encrypted];
  return settings.mode === 'prefer' ? [encrypted, false] : [encrypted];
};
