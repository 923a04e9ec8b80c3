import {
  createHash,
  createHmac,
  createPublicKey,
  type KeyObject,
  randomBytes,
  verify,
} from 'node:crypto';
import { safeEqual } from '../people/callers.ts';

/** A browser that is signed in: the public half of a key that it cannot give away. */
export interface Login {
  readonly id: string;
  /** SPKI in base64url, of P-256. */
  readonly public_key: string;
  /** The only origin that the key counts for. */
  readonly origin: string;
  readonly user_agent: string;
  /** RFC 3339, as the next ones. */
  readonly created_at: string;
  readonly used_at: string;
  readonly expires_at: string;
}

export type CodeRefusal = 'unknown' | 'used' | 'expired';

/** The token of one tab. */
export interface TabToken {
  readonly token: string;
  /** Epoch ms. */
  readonly expiresAt: number;
}

export interface SignedNonce {
  readonly id: string;
  readonly nonce: string;
  /** IEEE P1363 in base64url. */
  readonly signature: string;
}

export interface Logins {
  /** Works once, within a minute. */
  createCode(): { readonly code: string; readonly expiresAt: number };
  register(code: string, publicKey: string, userAgent: string): Promise<string | CodeRefusal>;
  createNonce(): string;
  /** Null when the signature does not count. */
  signIn(signed: SignedNonce): Promise<TabToken | null>;
  find(token: string): { readonly id: string; readonly expiresAt: number } | null;
  list(): readonly Login[];
  /** Null: every one. @returns the ids that are over */
  revoke(id: string | null): Promise<readonly string[]>;
}

export const codeMs = 60_000;
const nonceMs = 60_000;
const tokenMs = 12 * 60 * 60 * 1_000;
const loginMs = 30 * 24 * 60 * 60 * 1_000;
/** The oldest gives way. */
const codesAtMost = 100;
const tokensAtMost = 1_000;
const loginsAtMost = 50;
const userAgentAtMost = 200;

const secret = (): string => randomBytes(32).toString('base64url');
const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** What a tab signs. It names the origin: a signature for one place is worth nothing at another. */
export const signedText = (origin: string, id: string, nonce: string): string =>
  `agent hub login\n${origin}\n${id}\n${nonce}`;

/** Null for what is no public key of ECDSA P-256. */
const keyIn = (text: string): KeyObject | null => {
  try {
    const key = createPublicKey({
      key: Buffer.from(text, 'base64url'),
      format: 'der',
      type: 'spki',
    });
    const { namedCurve } = key.asymmetricKeyDetails ?? {};
    return key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1' ? key : null;
  } catch {
    return null;
  }
};

const isSigned = (
  { public_key, origin }: Login,
  { id, nonce, signature }: SignedNonce,
): boolean => {
  const key = keyIn(public_key);
  if (key === null) return false;
  const text = Buffer.from(signedText(origin, id, nonce));
  const bytes = Buffer.from(signature, 'base64url');
  return verify('sha256', text, { key, dsaEncoding: 'ieee-p1363' }, bytes);
};

/** Nonces are remembered only when they were used: asking for them takes no memory. */
const createNonces = (now: () => number) => {
  const seal = randomBytes(32);
  const used = new Map<string, number>();
  const sealOf = (text: string): string =>
    createHmac('sha256', seal).update(text).digest('base64url');
  return {
    create: (): string => {
      const text = `${now()}.${randomBytes(16).toString('base64url')}`;
      return `${text}.${sealOf(text)}`;
    },
    /** True once, within a minute. */
    isFresh: (nonce: string): boolean => {
      const [at = '', random = '', given = ''] = nonce.split('.');
      if (!safeEqual(given, sealOf(`${at}.${random}`)) || used.has(nonce)) return false;
      return now() - Number(at) <= nonceMs;
    },
    use: (nonce: string): void => {
      for (const [each, until] of used) if (until < now()) used.delete(each);
      used.set(nonce, now() + nonceMs);
    },
  };
};

export interface LoginsOptions {
  /** That of the hub now: the keys of every other one are dropped. */
  readonly origin: string;
  readonly kept: readonly Login[];
  readonly save: (logins: readonly Login[]) => Promise<void>;
  readonly onSaveFailed: (error: unknown) => void;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Tokens, codes and nonces end with the process; only public keys are kept. */
export const createLogins = ({ origin, kept, save, onSaveFailed, now }: LoginsOptions): Logins => {
  const isOver = ({ expires_at }: Login): boolean => Date.parse(expires_at) <= now();
  let logins: readonly Login[] = kept.filter((each) => each.origin === origin);
  const codes = new Map<string, { readonly expiresAt: number; used: boolean }>();
  const tokens = new Map<string, { readonly id: string; readonly expiresAt: number }>();
  const nonces = createNonces(now);
  const time = (at: number): string => new Date(at).toISOString();
  let saving: Promise<void> = Promise.resolve();
  /** One after the other, each what counts then: an older list must not bring back what was revoked. */
  const saveNow = (): Promise<void> => {
    saving = saving.catch(() => {}).then(() => save(logins));
    return saving;
  };
  const current = (id: string): Login | undefined =>
    logins.find((each) => each.id === id && !isOver(each));

  const keep = <Value>(all: Map<string, Value>, key: string, value: Value, atMost: number) => {
    all.set(key, value);
    const [oldest] = all.keys();
    if (all.size > atMost && oldest !== undefined) all.delete(oldest);
  };
  const dropTokens = (ids: readonly string[]): void => {
    for (const [token, { id }] of tokens) if (ids.includes(id)) tokens.delete(token);
  };
  const takeCode = (code: string): CodeRefusal | null => {
    const known = codes.get(digest(code));
    if (known === undefined) return 'unknown';
    if (known.used) return 'used';
    if (known.expiresAt < now()) return 'expired';
    known.used = true;
    return null;
  };

  return {
    createCode: () => {
      const code = secret();
      const expiresAt = now() + codeMs;
      keep(codes, digest(code), { expiresAt, used: false }, codesAtMost);
      return { code, expiresAt };
    },
    register: async (code, publicKey, userAgent) => {
      const refused = keyIn(publicKey) === null ? 'unknown' : takeCode(code);
      if (refused !== null) return refused;
      const at = now();
      const login: Login = {
        id: randomBytes(6).toString('hex'),
        public_key: publicKey,
        origin,
        user_agent: userAgent.slice(0, userAgentAtMost),
        created_at: time(at),
        used_at: time(at),
        expires_at: time(at + loginMs),
      };
      const before = logins.filter((each) => !isOver(each));
      const byUse = before.toSorted((one, other) => (one.used_at < other.used_at ? -1 : 1));
      const over = byUse.slice(0, Math.max(0, before.length + 1 - loginsAtMost));
      dropTokens(over.map(({ id }) => id));
      logins = [...before.filter((each) => !over.includes(each)), login];
      await saveNow();
      return login.id;
    },
    createNonce: nonces.create,
    signIn: async (signed) => {
      const login = current(signed.id);
      if (login === undefined || !nonces.isFresh(signed.nonce) || !isSigned(login, signed))
        return null;
      nonces.use(signed.nonce);
      const token = secret();
      const expiresAt = Math.min(now() + tokenMs, Date.parse(login.expires_at));
      keep(tokens, digest(token), { id: login.id, expiresAt }, tokensAtMost);
      logins = logins.map((each) => (each === login ? { ...each, used_at: time(now()) } : each));
      await saveNow().catch(onSaveFailed);
      return { token, expiresAt };
    },
    find: (token) => {
      const found = tokens.get(digest(token));
      return found !== undefined && found.expiresAt > now() ? found : null;
    },
    list: () => logins.filter((each) => !isOver(each)),
    revoke: async (id) => {
      const over = logins.filter((each) => id === null || each.id === id).map((each) => each.id);
      dropTokens(over);
      logins = logins.filter((each) => !over.includes(each.id));
      await saveNow();
      return over;
    },
  };
};
