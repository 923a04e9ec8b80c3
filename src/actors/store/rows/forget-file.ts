import { randomUUID } from 'node:crypto';
import type { Database, Work } from './rows.ts';

/** No statement may take longer than a server waits for it. */
const tasksAtOnce = 10_000;

/**
 * The store knows no content of a tasks file any more: what a file lacks was never in it. No folder
 * has its mark, so that whoever reads or writes the file just now records nothing of it. Inside a
 * transaction. @returns the mark
 */
export const forgetFile = function* (db: Database): Work<string> {
  const mark = randomUUID();
  yield* db.prepare("delete from ledger where key in ('file', 'others', 'waiting')").run();
  yield* db
    .prepare(
      `insert into ledger (key, value) values ('mark', ?)
       on conflict (key) do update set value = excluded.value`,
    )
    .run(mark);
  const last = db.prepare(
    `select id from tasks where id > ? order by id limit 1 offset ${tasksAtOnce - 1}`,
  );
  const some = db.prepare("update tasks set base = '' where id > ? and id <= ?");
  const rest = db.prepare("update tasks set base = '' where id > ?");
  let after = '';
  for (let row = yield* last.first(after); row !== null; row = yield* last.first(after)) {
    const to = String(row['id']);
    yield* some.run(after, to);
    after = to;
  }
  yield* rest.run(after);
  return mark;
};
