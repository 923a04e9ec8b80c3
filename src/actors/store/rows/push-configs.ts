import type { Answer } from '../port.ts';
import { afterAnswer, type Database, type Row, type Work } from './rows.ts';
import { textOrNull } from './stored-entry.ts';

/** An address at which a client of A2A wants to be told of one run. */
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
  all(): Answer<readonly PushConfig[]>;
  ofRun(run: string): Answer<readonly PushConfig[]>;
  count(): Answer<number>;
  /** Replaces one with the same run and id. @throws StoreError, or rejects with it */
  put(config: PushConfig): Answer<void>;
  setSent(run: string, id: string, seq: number): Answer<void>;
  remove(run: string, id: string): Answer<void>;
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
  const put = db.prepare(`insert into push_configs values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (run, id) do update set version = excluded.version, url = excluded.url,
       token = excluded.token, scheme = excluded.scheme, credentials = excluded.credentials,
       sent = excluded.sent`);
  const setSent = db.prepare('update push_configs set sent = ?3 where run = ?1 and id = ?2');
  const remove = db.prepare('delete from push_configs where run = ? and id = ?');
  const configsIn = (rows: readonly Row[]): readonly PushConfig[] => rows.map(configIn);
  const write = (statement: Work<unknown>): Answer<void> =>
    db.write(function* () {
      yield* statement;
    });
  return {
    all: () => afterAnswer(db.ask(all.all()), configsIn),
    ofRun: (run) => afterAnswer(db.ask(ofRun.all(run)), configsIn),
    count: () => afterAnswer(db.ask(count.first()), (row) => Number(row?.['count'] ?? 0)),
    put: ({ run, id, version, url, token, scheme, credentials, sent }) =>
      write(put.run(run, id, version, url, token, scheme, credentials, sent)),
    setSent: (run, id, seq) => write(setSent.run(run, id, seq)),
    remove: (run, id) => write(remove.run(run, id)),
  };
};
