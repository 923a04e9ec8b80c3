import type { Database, Row } from './database.ts';
import { textOrNull } from './stored-entry.ts';

/** Where a client of A2A wants to be told of one run. */
export interface PushConfig {
  readonly run: string;
  readonly id: string;
  /** The version of A2A that it was made with. */
  readonly version: string;
  readonly url: string;
  readonly token: string | null;
  readonly scheme: string | null;
  readonly credentials: string | null;
  /** The seq through which the journal was told. */
  readonly sent: number;
}

export interface PushConfigs {
  all(): readonly PushConfig[];
  ofRun(run: string): readonly PushConfig[];
  count(): number;
  /** Replaces one with the same run and id. @throws StoreError, or rejects with it */
  put(config: PushConfig): void | Promise<void>;
  setSent(run: string, id: string, seq: number): void | Promise<void>;
  remove(run: string, id: string): void | Promise<void>;
}

const configIn = (row: Row): PushConfig => ({
  run: String(row['run']),
  id: String(row['id']),
  version: String(row['version']),
  url: String(row['url']),
  token: textOrNull(row, 'token'),
  scheme: textOrNull(row, 'scheme'),
  credentials: textOrNull(row, 'credentials'),
  sent: Number(row['sent']),
});

export const createPushConfigs = (db: Database): PushConfigs => {
  const all = db.prepare('select * from push_configs');
  const ofRun = db.prepare('select * from push_configs where run = ? order by id');
  const count = db.prepare('select count(*) as count from push_configs');
  const put = db.prepare('insert or replace into push_configs values (?, ?, ?, ?, ?, ?, ?, ?)');
  const setSent = db.prepare('update push_configs set sent = ?3 where run = ?1 and id = ?2');
  const remove = db.prepare('delete from push_configs where run = ? and id = ?');
  return {
    all: () => all.all().map(configIn),
    ofRun: (run) => ofRun.all(run).map(configIn),
    count: () => Number(count.first()?.['count'] ?? 0),
    put: ({ run, id, version, url, token, scheme, credentials, sent }) =>
      db.write(() => void put.run(run, id, version, url, token, scheme, credentials, sent)),
    setSent: (run, id, seq) => db.write(() => void setSent.run(run, id, seq)),
    remove: (run, id) => db.write(() => void remove.run(run, id)),
  };
};
