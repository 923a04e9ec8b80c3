import { createHash, randomBytes } from 'node:crypto';
import type { Answer } from '../actors/store/port.ts';
import type { CodeRefusal, LoginRows, LoginTimes } from '../actors/store/postgres/login-rows.ts';

export interface PageCode {
  readonly code: string;
  /** Epoch ms. */
  readonly expiresAt: number;
}

export interface PageSession {
  readonly token: string;
  /** Epoch ms. */
  readonly expiresAt: number;
}

type Exchanged = PageSession | { readonly refused: CodeRefusal };

interface FoundSession extends Pick<PageSession, 'expiresAt'> {
  /** The digest of the token that it was made with; it ends with that. */
  readonly under: string;
}

/** The logins of the web page. */
export interface PageSessions {
  /** `under`: the digest of the token that asks, whose rights the login has. */
  createCode(under: string): Answer<PageCode>;
  /** A code works once. */
  exchange(code: string): Answer<Exchanged>;
  /** Null when the token is not that of a session, or the session is over. */
  find(token: string): Answer<FoundSession | null>;
  end(token: string): Answer<void>;
}

export const loginTimes: LoginTimes = {
  codeMs: 60_000,
  sessionMs: 12 * 60 * 60 * 1_000,
  rememberedMs: 60 * 60 * 1_000,
};
const { codeMs, sessionMs, rememberedMs } = loginTimes;
/** Of one token: its oldest code or login gives way, and nobody else's. */
const loginsAtMost = 100;

interface KnownCode {
  readonly expiresAt: number;
  readonly under: string;
  readonly used: boolean;
}

export const digestOf = (text: string): string =>
  createHash('sha256').update(text).digest('base64url');
export const secret = (): string => randomBytes(32).toString('base64url');
const secretForm = /^[A-Za-z0-9_-]{43}$/;

const keep = <Value extends { readonly under: string }>(
  all: Map<string, Value>,
  key: string,
  value: Value,
): void => {
  all.set(key, value);
  const own = [...all].filter(([, { under }]) => under === value.under);
  const [oldest] = own;
  if (own.length > loginsAtMost && oldest !== undefined) all.delete(oldest[0]);
};

/** In memory: a restart ends them all. `now`: epoch ms. Holds digests, never a code or a token. */
export const createPageSessions = (now: () => number): PageSessions => {
  const codes = new Map<string, KnownCode>();
  const sessions = new Map<string, { readonly expiresAt: number; readonly under: string }>();
  return {
    createCode: (under) => {
      const code = secret();
      const expiresAt = now() + codeMs;
      keep(codes, digestOf(code), { expiresAt, under, used: false });
      return { code, expiresAt };
    },
    exchange: (code) => {
      const key = digestOf(code);
      const known = codes.get(key);
      if (known === undefined || now() > known.expiresAt + rememberedMs)
        return { refused: 'unknown' };
      if (known.used) return { refused: 'used' };
      if (now() > known.expiresAt) return { refused: 'expired' };
      codes.set(key, { ...known, used: true });
      const session = { token: secret(), expiresAt: now() + sessionMs };
      const { expiresAt } = session;
      keep(sessions, digestOf(session.token), { expiresAt, under: known.under });
      return session;
    },
    find: (given) => {
      const key = digestOf(given);
      const found = sessions.get(key);
      if (found === undefined) return null;
      if (now() <= found.expiresAt) return found;
      sessions.delete(key);
      return null;
    },
    end: (given) => void sessions.delete(digestOf(given)),
  };
};

/** In the store: they hold at all servers that share it and have the same token. */
export const createSharedPageSessions = (rows: LoginRows): PageSessions => ({
  createCode: async (under) => {
    const code = secret();
    return { code, expiresAt: await rows.addCode(digestOf(code), under) };
  },
  exchange: async (code) => {
    const session = secret();
    const made = await rows.exchange(digestOf(code), digestOf(session));
    return typeof made === 'number' ? { token: session, expiresAt: made } : made;
  },
  find: async (given) => (secretForm.test(given) ? rows.find(digestOf(given)) : null),
  end: (given) => rows.end(digestOf(given)),
});
