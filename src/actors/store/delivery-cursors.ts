import type { Database } from './database.ts';

/** How far in the journal each webhook is. */
export interface DeliveryCursors {
  /** The seq of the last entry that needs no more work; null for a new webhook. */
  read(key: string): number | null;
  /** @throws StoreError, or rejects with it */
  save(key: string, seq: number): void | Promise<void>;
  /** Forgets webhooks that are not configured any more. */
  keepOnly(keys: readonly string[]): void | Promise<void>;
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
    read: (key) => {
      const row = cursor.first(key);
      return row === null ? null : Number(row['seq']);
    },
    save: (key, seq) => db.write(() => void set.run(key, seq)),
    keepOnly: (keys) => {
      const gone = all.all().filter(({ webhook }) => !keys.includes(String(webhook)));
      if (gone.length === 0) return;
      return db.write(() => {
        for (const { webhook } of gone) remove.run(String(webhook));
      });
    },
  };
};
