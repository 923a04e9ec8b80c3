import type { Transacting, Work } from './rows.ts';
import { lazy } from './store-statements.ts';

/** The tasks that requests created. Both are called inside the transaction that creates the task. */
export interface RequestRows {
  taskOf(requestId: string): Work<string | null>;
  add(requestId: string, taskId: string): Work<unknown>;
}

export const createRequestRows = (db: Pick<Transacting, 'prepare'>): RequestRows => {
  const find = lazy(() => db.prepare('select task_id from requests where id = ?'));
  const add = lazy(() => db.prepare('insert into requests (id, task_id) values (?, ?)'));
  return {
    *taskOf(requestId) {
      const row = yield* find().first(requestId);
      return row === null ? null : String(row['task_id']);
    },
    add: (requestId, taskId) => add().send(requestId, taskId),
  };
};
