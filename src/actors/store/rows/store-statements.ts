import { type Database, manyPlaces } from './rows.ts';
import { isDecision } from './schema.ts';

/** A journal of version 2.1 that is only read lacks tables and columns of some statements. */
export const lazy = <Result>(prepare: () => Result): (() => Result) => {
  let prepared: { readonly result: Result } | null = null;
  return () => {
    prepared ??= { result: prepare() };
    return prepared.result;
  };
};

/** The names between `workflow:` and `workflow;`. */
const isWorkflow = "id >= 'workflow:' and id < 'workflow;'";
/** No id of a task has a colon, and the key of a chart beside those of tasks has one. */
export const isHostedKey = (id: string): boolean => id.includes(':');

/** A pending actor that a server should have, and none has. The index `actors_unhosted` is for it. */
export const isUnowned = "owner is null and pending = 1 and (id = task_id or id like '%:%')";

/** The state of an actor, and that of its agent at work, are of these versions of the charts. */
export const isOfVersions = (oldest: string, newest: string): string =>
  `version between ${oldest} and ${newest} and coalesce((select agent.version from actors agent
    where agent.id = actors.id || '#' || cast(actors.live_attempt as text)), version)
    between ${oldest} and ${newest}`;

export const prepareStatements = (db: Database) => ({
  saveStep: db.prepare(
    `insert into steps (task_id, attempt, key, intent, result) values (?, ?, ?, ?, ?)
     on conflict (task_id, attempt, key) do update set intent = excluded.intent,
       result = coalesce(excluded.result, steps.result)`,
  ),
  /** The attempt gets on, so that its server did not end because of it. */
  forgetRestores: lazy(() =>
    db.prepare('update actors set restores = 0 where id = ? and restores <> 0'),
  ),
  forgetSteps: db.prepare(
    "delete from steps where task_id = ? and attempt <= ? and key <> 'folder'",
  ),
  /** What an attempt read goes with its steps. */
  forgetImages: lazy(() =>
    db.prepare('delete from images where task_id = ? and attempt > 0 and attempt <= ?'),
  ),
  steps: db.prepare('select * from steps where task_id = ? and attempt = ? order by position'),
  addRequest: db.prepare('insert into requests (id, task_id) values (?, ?) on conflict do nothing'),
  readAll: db.prepare('select * from journal where seq > ? order by seq limit ?'),
  readTask: db.prepare('select * from journal where task_id = ? and seq > ? order by seq limit ?'),
  latest: db.prepare(
    'select * from journal where task_id = ? and type = ? order by seq desc limit 1',
  ),
  decisions: db.prepare(`select * from journal where ${isDecision} order by seq desc limit ?`),
  latestOfPending: db.prepare(
    `select latest from (
       select (select seq from journal where task_id = actors.id and type = ?
         order by seq desc limit 1) as latest
       from actors where pending = 1 and id = task_id) as pending
     where latest is not null order by latest`,
  ),
  removedOf: lazy(() =>
    db.prepare('select * from histories where task_id = ? and removed_seq is not null'),
  ),
  lastRemoved: lazy(() =>
    db.prepare(
      'select * from histories where removed_seq is not null order by removed_seq desc limit 1',
    ),
  ),
  actor: db.prepare('select * from actors where id = ?'),
  tasks: db.prepare('select * from actors where id = task_id'),
  pending: db.prepare('select * from actors where pending = 1 and id = task_id'),
  pendingCount: db.prepare(
    'select count(*) as count from actors where pending = 1 and id = task_id',
  ),
  pendingOf: lazy(() =>
    db.prepare(
      `select id, coalesce((select seq from journal where task_id = actors.id and type = 'snapshot'
         order by seq desc limit 1), 0) as latest
       from actors where pending = 1 and id = task_id and owner = ? order by latest, id`,
    ),
  ),
  actorsOf: db.prepare(`select * from actors where id in (${manyPlaces})`),
  openHosted: lazy(() =>
    db.prepare("select * from actors where pending = 1 and id > ?1 || ':' and id < ?1 || ';'"),
  ),
  endedWorkflows: lazy(() =>
    db.prepare(
      `select * from actors where pending = 0 and ${isWorkflow} and (changed_at, id) < (?, ?)
       order by changed_at desc, id desc limit ?`,
    ),
  ),
  request: db.prepare('select * from requests where id = ?'),
  answer: db.prepare(
    `insert into requests (id, task_id, answer) values (?, ?, ?)
     on conflict (id) do update set answer = coalesce(requests.answer, excluded.answer)
     returning answer`,
  ),
});

export type StoreStatements = ReturnType<typeof prepareStatements>;
