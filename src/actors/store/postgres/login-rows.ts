import type { Work } from '../rows/rows.ts';
import type { PostgresDatabase } from './database.ts';

export type CodeRefusal = 'used' | 'expired' | 'unknown';

/**
 * The logins of the web page at all servers of a store. Codes and sessions are kept as digests;
 * `under` is the digest of the token that they were made with, whose rights they have. Times are of
 * the database (epoch ms).
 */
export interface LoginRows {
  /** @returns when the code expires */
  addCode(code: string, under: string): Promise<number>;
  /** Makes a session of a code, once over all servers. @returns when the session ends */
  exchange(code: string, session: string): Promise<number | { readonly refused: CodeRefusal }>;
  /** Null when there is none. `expiresAt`: when it ends. */
  find(session: string): Promise<{ readonly expiresAt: number; readonly under: string } | null>;
  end(session: string): Promise<void>;
  /** Lets every server look whether its streams are still allowed. */
  tellEnd(): Promise<void>;
  /** Calls the listener when a session was ended, or a token revoked, at any server. */
  onEnd(listener: () => void): void;
}

export interface LoginTimes {
  readonly codeMs: number;
  readonly sessionMs: number;
  /** A code is remembered for so long, to say why it does not work. */
  readonly rememberedMs: number;
}

/** The most codes, and the most sessions, of one token: its oldest gives way, and nobody else's. */
const rowsAtMost = 1_000;
const endNotice = 'logout';

const prepareLogins = (db: PostgresDatabase) => ({
  add: db.prepare(
    'insert into page_logins (digest, kind, under, expires_at) values (?, ?, ?, ?) on conflict (digest) do nothing',
  ),
  take: db.prepare(
    `update page_logins set used = 1
     where digest = ? and kind = 'code' and used = 0 and expires_at >= ?
     returning under`,
  ),
  code: db.prepare("select used, expires_at from page_logins where digest = ? and kind = 'code'"),
  find: db.prepare(
    `select expires_at, under from page_logins
     where digest = ? and kind = 'session' and expires_at >= clock_ms()`,
  ),
  end: db.prepare("delete from page_logins where digest = ? and kind = 'session'"),
  removeOld: db.prepare('delete from page_logins where kind = ? and expires_at < ?'),
  removeMany: db.prepare(
    `delete from page_logins where digest in (
       select digest from page_logins where kind = ? and under = ?
       order by expires_at desc, digest offset ${rowsAtMost}
     )`,
  ),
});

/** The tables are there. */
export const createLoginRows = (
  db: PostgresDatabase,
  { codeMs, sessionMs, rememberedMs }: LoginTimes,
): LoginRows => {
  const sql = prepareLogins(db);
  const add = function* (
    kind: 'code' | 'session',
    digest: string,
    under: string,
    expiresAt: number,
  ): Work<void> {
    yield* sql.add.send(digest, kind, under, expiresAt);
    yield* sql.removeMany.send(kind, under);
  };
  const tellEnd = (): Promise<void> => db.tellServers(endNotice);
  return {
    addCode: async (code, under) =>
      db.write(function* () {
        const now = yield* db.now();
        yield* sql.removeOld.send('code', now - rememberedMs);
        yield* sql.removeOld.send('session', now);
        yield* add('code', code, under, now + codeMs);
        return now + codeMs;
      }),
    exchange: async (code, session) =>
      db.write(function* () {
        const now = yield* db.now();
        const taken = yield* sql.take.first(code, now);
        if (taken !== null) {
          yield* add('session', session, String(taken['under']), now + sessionMs);
          return now + sessionMs;
        }
        const known = yield* sql.code.first(code);
        if (known === null || now > Number(known['expires_at']) + rememberedMs)
          return { refused: 'unknown' as const };
        return { refused: known['used'] === 1 ? ('used' as const) : ('expired' as const) };
      }),
    find: async (session) => {
      const row = await db.ask(sql.find.first(session));
      if (row === null) return null;
      return { expiresAt: Number(row['expires_at']), under: String(row['under']) };
    },
    end: async (session) => {
      await db.write(function* () {
        yield* sql.end.send(session);
      });
      await tellEnd();
    },
    tellEnd,
    onEnd: (listener) =>
      db.onNotice((notice) => {
        if (notice === endNotice) listener();
      }),
  };
};
