import type { Answer } from '../port.ts';
import { afterAnswer, type Database, type Row } from './rows.ts';
import { lazy } from './store-statements.ts';

/** The token of a person or a client. The token itself is nowhere: only its digest is kept. */
export interface KeptToken {
  readonly name: string;
  readonly rights: string;
  /** SHA-256, hexadecimal. */
  readonly digest: string;
  /** Epoch ms. */
  readonly createdAt: number;
  /** Epoch ms; null: never. */
  readonly expiresAt: number | null;
}

export interface Tokens {
  list(): Answer<readonly KeptToken[]>;
  /** Also one that has expired. */
  find(digest: string): Answer<KeptToken | null>;
  /** `taken`: another token has the name; `full`: there are `tokensAtMost`. */
  add(token: KeptToken): Answer<'added' | 'taken' | 'full'>;
  /** @returns false when none has the name */
  remove(name: string): Answer<boolean>;
}

export const tokensAtMost = 1_000;

const tokenOf = (row: Row): KeptToken => ({
  name: String(row['name']),
  rights: String(row['rights']),
  digest: String(row['digest']),
  createdAt: Number(row['created_at']),
  expiresAt: row['expires_at'] == null ? null : Number(row['expires_at']),
});

export const createTokens = (db: Database): Tokens => {
  const sql = lazy(() => ({
    list: db.prepare('select * from tokens order by name'),
    find: db.prepare('select * from tokens where digest = ?'),
    count: db.prepare('select count(*) as count from tokens'),
    add: db.prepare('insert into tokens values (?, ?, ?, ?, ?) on conflict (name) do nothing'),
    remove: db.prepare('delete from tokens where name = ?'),
  }));
  return {
    list: () => afterAnswer(db.ask(sql().list.all()), (rows) => rows.map(tokenOf)),
    find: (digest) =>
      afterAnswer(db.ask(sql().find.first(digest)), (row) => (row === null ? null : tokenOf(row))),
    add: ({ name, rights, digest, createdAt, expiresAt }) =>
      db.write(function* () {
        const row = yield* sql().count.first();
        if (Number(row?.['count']) >= tokensAtMost) return 'full';
        const { changes } = yield* sql().add.run(name, rights, digest, createdAt, expiresAt);
        return changes === 0 ? 'taken' : 'added';
      }),
    remove: (name) =>
      db.write(function* () {
        return (yield* sql().remove.run(name)).changes > 0;
      }),
  };
};
