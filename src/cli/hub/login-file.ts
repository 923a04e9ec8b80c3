import { readFileSync } from 'node:fs';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import type { Login } from '../../http/hub/logins.ts';
import { parseJson, textIn } from '../../machines/json.ts';

const loginKeys = [
  ...['id', 'public_key', 'origin', 'user_agent', 'created_at', 'used_at', 'expires_at'],
] as const;

const isLogin = (value: unknown): value is Login =>
  loginKeys.every((key) => textIn(value, key) !== null);

/** Those of a file that cannot be read are over. */
export const readLogins = (file: string): readonly Login[] => {
  try {
    const kept = parseJson(readFileSync(file, 'utf8'));
    return Array.isArray(kept) ? kept.filter(isLogin) : [];
  } catch {
    return [];
  }
};

export const writeLogins = (file: string, logins: readonly Login[]): Promise<void> =>
  writeFileAtomically(file, `${JSON.stringify(logins, null, 2)}\n`);
