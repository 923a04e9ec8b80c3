import type { Database, Work } from './rows.ts';

/** No statement may take longer than a server waits for it. */
const tasksAtOnce = 20_000;

/** No task counts as held by a tasks file: what that lacks was never in it. Inside a transaction. */
export const forgetHeldLines = function* (db: Database): Work<void> {
  const some = db.prepare(
    `update tasks set base = '' where id in
       (select id from tasks where base is null or base <> '' limit ${tasksAtOnce})`,
  );
  while ((yield* some.run()).changes > 0);
};
