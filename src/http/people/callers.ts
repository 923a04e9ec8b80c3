import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Answer } from '../../actors/store/port.ts';
import { afterAnswer } from '../../actors/store/rows/rows.ts';
import type { KeptToken, Tokens } from '../../actors/store/rows/token-rows.ts';
import { digestOf, type PageSessions } from '../page-sessions.ts';
import { cliAgent, ownerName } from './names.ts';
import { type TokenRights, tokenRights } from './rights.ts';

const bytesOf = (text: string): Buffer => createHash('sha256').update(text).digest();
/** Constant time. */
export const safeEqual = (one: string, other: string): boolean =>
  timingSafeEqual(bytesOf(one), bytesOf(other));

/** What a token says of its holder. */
export interface Identity {
  readonly name: string;
  readonly rights: TokenRights;
  /** It has the token of the server, or a login that was made with it. */
  readonly isOwner: boolean;
  readonly isSession: boolean;
  /** The digest of its token; for a session, of the one that it was made with. */
  readonly under: string;
}

export type Identify = (given: string | null) => Answer<Identity | null>;

/** Who asks, and from where. */
export interface Caller extends Identity {
  readonly via: 'cli' | 'page' | 'a2a' | 'mcp' | 'rpc';
  readonly address: string;
}

interface IdentifyPorts {
  /** Null when authentication is off. */
  readonly token: () => string | null;
  readonly sessions: Pick<PageSessions, 'find'>;
  readonly tokens: Pick<Tokens, 'find'>;
  /** Epoch ms. */
  readonly now: () => number;
}

const owner = { name: ownerName, rights: 'admin', isOwner: true } as const;

/** By the store at each request: a token that is revoked or too old is none. */
export const createIdentify = ({ token, sessions, tokens, now }: IdentifyPorts): Identify => {
  const holderOf = (kept: KeptToken | null, under: string): Omit<Identity, 'isSession'> | null => {
    const rights = tokenRights.find((known) => known === kept?.rights);
    if (kept === null || rights === undefined || !safeEqual(kept.digest, under)) return null;
    const isOver = kept.expiresAt !== null && now() >= kept.expiresAt;
    return isOver ? null : { name: kept.name, rights, isOwner: false, under };
  };
  return (given) => {
    const expected = token();
    if (expected === null) return { ...owner, isSession: false, under: '' };
    if (given === null) return null;
    const master = digestOf(expected);
    const under = digestOf(given);
    if (safeEqual(given, expected)) return { ...owner, isSession: false, under };
    return afterAnswer(tokens.find(under), (kept) => {
      if (kept !== null) {
        const holder = holderOf(kept, under);
        return holder === null ? null : { ...holder, isSession: false };
      }
      return afterAnswer(sessions.find(given), (session) => {
        if (session === null) return null;
        if (safeEqual(session.under, master))
          return { ...owner, isSession: true, under: session.under };
        return afterAnswer(tokens.find(session.under), (maker) => {
          const holder = holderOf(maker, session.under);
          return holder === null ? null : { ...holder, isSession: true };
        });
      });
    }) as Answer<Identity | null>;
  };
};

/** A socket of a file has none: the hub asks by one. */
export const addressOf = ({ ip }: { readonly ip: string | undefined }): string => ip ?? 'hub';

export const callerFor = (request: FastifyRequest, identity: Identity): Caller => {
  const { headers, routeOptions } = request;
  const isMcp = routeOptions.url?.startsWith('/mcp') === true;
  const isCli = headers['user-agent'] === cliAgent;
  const via = identity.isSession ? 'page' : isMcp ? 'mcp' : isCli ? 'cli' : 'rpc';
  return { ...identity, via, address: addressOf(request) };
};

/** Counts the failures of each caller within a minute. */
export interface Throttle {
  /** `over`: the caller has more than allowed; `first`: for the first time. */
  failed(caller: string): { readonly over: boolean; readonly first: boolean };
}

export const windowMs = 60_000;
const failuresAtMost = 20;
/** Above this many callers all counts restart, so memory stays bounded. */
const callersAtMost = 1_000;

export const createThrottle = (now: () => number): Throttle => {
  const callers = new Map<string, { since: number; failures: number }>();
  return {
    failed: (caller) => {
      const known = callers.get(caller);
      const fresh = known === undefined || now() - known.since >= windowMs;
      if (fresh && callers.size >= callersAtMost) callers.clear();
      const entry = fresh
        ? { since: now(), failures: 1 }
        : { ...known, failures: known.failures + 1 };
      callers.set(caller, entry);
      return {
        over: entry.failures > failuresAtMost,
        first: entry.failures === failuresAtMost + 1,
      };
    },
  };
};
