/** A log entry of what a person decided; its data begins with the decision. */
export const isDecision = `type = 'log' and data like '{"decision":%'`;

/**
 * All tables of a project. `tasks.line` is the task in bd's form, word for word as the file has it
 * when nobody changed it; `tasks.base` is the line that the file held last, null when that is
 * `line`, empty when the file never held the task. `tasks.unmet` counts the blockers that are not
 * done. `journal.previous` is the hash of the task's previous entry, null for entries of version
 * 2.1; `histories.last_hash` is that of its last one. `journal.task_seq` numbers the entries of a
 * task without a gap; `histories.last_task_seq` is that of its last one. `journal.base` is the snapshot whose task has
 * the fields that are `{}` in this one; `histories.base` is the task's last whole snapshot. The
 * entries up to `histories.removed_seq` were removed when they were `removed_days` old; `removing`
 * while some are still there. `nodes` has the lease and the last commit of each start of a server, and
 * which of its changes were stale; `ended`: another one took over; `slots`: how many agents it may
 * run of those that all servers share, `usable`: how many it could run. `actors.owner` is the start of a
 * server that has a pending task, `attempts.owner` the one that ended an attempt. `actors.waits_role`
 * is set while a task waits for a slot. `delivery_cursors` has
 * the last entry that each webhook is done with. `images` has base64; without a task they wait to be
 * attached, and `attempt` is 0 for those that people attached. `tokens` has digests (SHA-256), `audit`
 * a chain of lines, whose end is in `ledger`, too. `task_counts` is added by `add-missing.ts`.
 */
export const schema = `
create table if not exists journal (
  seq integer primary key autoincrement,
  task_id text not null,
  attempt integer not null,
  type text not null,
  at integer not null,
  data text not null,
  cause text,
  base integer,
  previous text,
  hash text,
  task_seq integer not null default 0
);
create index if not exists journal_by_task on journal (task_id, seq);
create index if not exists journal_decisions on journal (seq) where ${isDecision};
create table if not exists histories (
  task_id text primary key,
  last_hash text not null,
  last_task_seq integer not null default 0,
  base integer,
  removed_seq integer,
  removed_task_seq integer,
  removed_hash text,
  removed_at integer,
  removed_days integer,
  removing integer
) without rowid;
create index if not exists histories_removed on histories (removed_seq) where removed_seq is not null;
create index if not exists histories_removing on histories (task_id) where removing = 1;
create table if not exists counters (
  name text primary key,
  value real not null
) without rowid;
create table if not exists attempts (
  task_id text not null,
  attempt integer not null,
  role text not null,
  status text not null,
  ended_at integer not null,
  seconds real not null,
  model_calls integer not null,
  tool_calls integer not null,
  input_tokens integer not null,
  output_tokens integer not null,
  cached_tokens integer not null,
  cache_write_tokens integer not null default 0,
  cost_usd real,
  owner text,
  primary key (task_id, attempt)
) without rowid;
create table if not exists spending (
  scope text primary key,
  usd real not null
) without rowid;
create table if not exists usage_days (
  day text not null,
  role text not null,
  attempts integer not null,
  complete integer not null,
  failed integer not null,
  cancelled integer not null,
  seconds real not null,
  model_calls integer not null,
  tool_calls integer not null,
  input_tokens integer not null,
  output_tokens integer not null,
  cached_tokens integer not null,
  cache_write_tokens integer not null default 0,
  cost_usd real,
  primary key (day, role)
) without rowid;
create table if not exists actors (
  id text primary key,
  task_id text not null,
  version integer not null,
  pending integer not null,
  changed_at integer not null,
  snapshot text not null,
  revision integer not null default 0,
  live_attempt integer not null default 0,
  owner text,
  waits_role text,
  waits_priority integer,
  restores integer not null default 0
) without rowid;
create index if not exists actors_pending on actors (id) where pending = 1;
create index if not exists workflows_ended on actors (changed_at, id)
  where pending = 0 and id >= 'workflow:' and id < 'workflow;';
create table if not exists steps (
  position integer primary key,
  task_id text not null,
  attempt integer not null,
  key text not null,
  intent text not null,
  result text,
  unique (task_id, attempt, key)
);
create table if not exists requests (
  id text primary key,
  task_id text not null,
  answer text
) without rowid;
create index if not exists requests_by_task on requests (task_id);
create table if not exists delivery_cursors (
  webhook text primary key,
  seq integer not null
) without rowid;
create table if not exists push_configs (
  run text not null,
  id text not null,
  version text not null,
  url text not null,
  token text,
  scheme text,
  credentials text,
  sent integer not null,
  primary key (run, id)
) without rowid;
create table if not exists images (
  task_id text not null,
  attempt integer not null,
  digest text not null,
  place integer not null,
  name text not null,
  media_type text not null,
  bytes integer not null,
  at integer not null,
  data text not null,
  primary key (task_id, attempt, digest)
);
create table if not exists tokens (
  name text primary key,
  rights text not null,
  digest text not null unique,
  created_at integer not null,
  expires_at integer
) without rowid;
create table if not exists audit (
  seq integer primary key,
  id text not null unique,
  at integer not null,
  name text not null,
  via text not null,
  address text not null,
  action text not null,
  task_id text,
  about text,
  outcome text not null,
  previous text not null,
  hash text not null
);
create index if not exists audit_by_task on audit (task_id, seq) where task_id is not null;
create table if not exists nodes (
  id text primary key,
  last_commit integer not null,
  stale text not null,
  lease_ms integer not null default 0,
  lease_until integer not null default 0,
  ended integer not null default 0,
  name text not null default '',
  joined integer not null default 0,
  slots integer not null default 0,
  usable integer not null default 0,
  waiting integer not null default 0,
  facts text
) without rowid;
create table if not exists tasks (
  position integer primary key,
  id text not null unique,
  line text not null,
  base text,
  status text not null,
  done integer not null,
  created_at text not null,
  unmet integer not null,
  revision integer not null
);
create index if not exists tasks_in_order on tasks (created_at, id) where status <> 'tombstone';
create index if not exists tasks_by_status on tasks (status, (unmet > 0), created_at, id);
create index if not exists tasks_by_revision on tasks (revision);
create index if not exists tasks_to_export on tasks (id) where base is not null;
create table if not exists dependencies (
  task_id text not null,
  depends_on text not null,
  primary key (task_id, depends_on)
) without rowid;
create index if not exists dependents on dependencies (depends_on, task_id);
create table if not exists ledger (
  key text primary key,
  value text not null
) without rowid;
`;

/** On columns that older databases lack at first. */
export const indexesOfAdded = `
drop index if exists actors_unowned;
create index if not exists actors_unhosted on actors (id) where owner is null and pending = 1
  and (id = task_id or id like '%:%');
`;
