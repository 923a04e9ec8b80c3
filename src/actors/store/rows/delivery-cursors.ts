import type { Answer } from '../port.ts';
import { afterAnswer, type Database } from './rows.ts';

/** How far in the journal each webhook is. */
export interface DeliveryCursors {
  /** The seq of the last entry that needs no more work; null for a new webhook. */
  read(key: string): Answer<number | null>;
  /** @throws StoreError, or rejects with it */
  save(key: string, seq: number): Answer<void>;
  /** Forgets webhooks that are not configured any more. */
  keepOnly(keys: readonly string[]): Answer<void>;
}

export const createDeliveryCursors = (db: Database): DeliveryCursors => {
  const cursor = db.prepare('select seq from delivery_cursors where webhook = ?');
  const all = db.prepare('select webhook from delivery_cursors');
  const set = db.prepare(
    `insert into delivery_cursors (webhook, seq) values (?, ?)
     on conflict (webhook) do update set seq = excluded.seq`,
  );
  const remove = db.prepare('delete from delivery_cursors where webhook = ?');
  return {
    read: (key) =>
      afterAnswer(db.ask(cursor.first(key)), (row) => (row === null ? null : Number(row['seq']))),
    save: (key, seq) =>
      db.write(function* () {
        yield* set.run(key, seq);
      }),
    keepOnly: (keys) =>
      db.write(function* () {
        for (const { webhook } of yield* all.all())
          if (!keys.includes(String(webhook))) yield* remove.run(String(webhook));
      }),
  };
};
