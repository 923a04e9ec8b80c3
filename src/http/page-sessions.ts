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

/** The logins of the web page. */
export interface PageSessions {
  createCode(): Answer<PageCode>;
  /** A code works once. */
  exchange(code: string): Answer<Exchanged>;
  /** Null when the token is not that of a session, or the session is over. */
  find(token: string): Answer<Pick<PageSession, 'expiresAt'> | null>;
  end(token: string): Answer<void>;
}

export const loginTimes: LoginTimes = {
  codeMs: 60_000,
  sessionMs: 12 * 60 * 60 * 1_000,
  rememberedMs: 60 * 60 * 1_000,
};
const { codeMs, sessionMs, rememberedMs } = loginTimes;
/** The oldest gives way. */
const codesAtMost = 100;
const sessionsAtMost = 100;

interface KnownCode {
  readonly expiresAt: number;
  /** The server's token at that time. */
  readonly under: string;
  readonly used: boolean;
}

const digestOfSession = (text: string): string =>
  createHash('sha256').update(text).digest('base64url');
const secret = (): string => randomBytes(32).toString('base64url');
const secretForm = /^[A-Za-z0-9_-]{43}$/;

/** Adds as the newest; the oldest leaves when there are too many. */
const keep = <Value>(all: Map<string, Value>, key: string, value: Value, atMost: number): void => {
  all.delete(key);
  all.set(key, value);
  const [oldest] = all.keys();
  if (all.size > atMost && oldest !== undefined) all.delete(oldest);
};

/**
 * In memory: a restart ends them all. `token`: that of the server; a new one ends every session.
 * `now`: epoch ms. Holds digests, never a code or a token.
 */
export const createPageSessions = (token: () => string | null, now: () => number): PageSessions => {
  const codes = new Map<string, KnownCode>();
  const sessions = new Map<string, { readonly expiresAt: number; readonly under: string }>();
  const master = (): string => digestOfSession(token() ?? '');
  return {
    createCode: () => {
      const code = secret();
      const expiresAt = now() + codeMs;
      keep(codes, digestOfSession(code), { expiresAt, under: master(), used: false }, codesAtMost);
      return { code, expiresAt };
    },
    exchange: (code) => {
      const key = digestOfSession(code);
      const known = codes.get(key);
      if (known === undefined || now() > known.expiresAt + rememberedMs)
        return { refused: 'unknown' };
      if (known.used) return { refused: 'used' };
      if (now() > known.expiresAt || known.under !== master()) return { refused: 'expired' };
      codes.set(key, { ...known, used: true });
      const session = { token: secret(), expiresAt: now() + sessionMs };
      const { expiresAt } = session;
      keep(
        sessions,
        digestOfSession(session.token),
        { expiresAt, under: known.under },
        sessionsAtMost,
      );
      return session;
    },
    find: (given) => {
      const key = digestOfSession(given);
      const found = sessions.get(key);
      if (found === undefined) return null;
      if (now() <= found.expiresAt && found.under === master())
        return { expiresAt: found.expiresAt };
      sessions.delete(key);
      return null;
    },
    end: (given) => void sessions.delete(digestOfSession(given)),
  };
};

/** In the store: they hold at all servers that share it and have the same token. */
export const createSharedPageSessions = (
  token: () => string | null,
  rows: LoginRows,
): PageSessions => {
  const master = (): string => digestOfSession(token() ?? '');
  return {
    createCode: async () => {
      const code = secret();
      return { code, expiresAt: await rows.addCode(digestOfSession(code), master()) };
    },
    exchange: async (code) => {
      const session = secret();
      const made = await rows.exchange(digestOfSession(code), digestOfSession(session), master());
      return typeof made === 'number' ? { token: session, expiresAt: made } : made;
    },
    find: async (given) => {
      if (!secretForm.test(given)) return null;
      const expiresAt = await rows.find(digestOfSession(given), master());
      return expiresAt === null ? null : { expiresAt };
    },
    end: (given) => rows.end(digestOfSession(given)),
  };
};
