import type { Database, Work } from './rows.ts';

/** No statement may take longer than a server waits for it. */
const tasksAtOnce = 10_000;

/** No task counts as held by a tasks file: what that lacks was never in it. Inside a transaction. */
export const forgetHeldLines = function* (db: Database): Work<void> {
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
};
