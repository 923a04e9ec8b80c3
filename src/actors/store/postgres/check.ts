import { messageOf } from '../../../machines/message-of.ts';
import { withTimeout } from '../../process/with-timeout.ts';
import type { Database } from '../rows.ts';
import type { Pool } from './pool.ts';
import { tableNames } from './schema.ts';
import { beginMs, undo } from './transactions.ts';

/** A command that looks for its server waits 3 s. */
const answerMs = 2_000;
const lockMs = 1_500;

/** Takes the locks of a write: of all tables, and of the end of the journal. */
const probe = `begin;
  set local lock_timeout = ${lockMs};
  lock table ${tableNames.join(', ')} in row exclusive mode;
  select 1 from journal_end for update`;

/**
 * Answers in time, also when others hold locks or the database says nothing. Calls at once share one
 * look. `pool` has the connection that writes.
 */
export const createCheck = (pool: Pool, shown: string): Database['check'] => {
  let running: Promise<void> | null = null;
  const look = async (isLast = false): Promise<void> => {
    let isCut = false;
    try {
      await pool.use(async (connection) => {
        try {
          await connection.queries(probe, beginMs);
        } finally {
          isCut = !connection.isOpen();
          await undo(connection);
        }
      });
    } catch (error) {
      // The server may have been started anew since the last write.
      if (!isCut || isLast) throw error;
      await look(true);
    }
  };
  return async () => {
    running ??= look().finally(() => {
      running = null;
    });
    try {
      await withTimeout(running, answerMs, `a look at the tables in ${shown}`);
      return { ok: true, detail: `the journal in ${shown} can be used` };
    } catch (error) {
      return { ok: false, detail: messageOf(error) };
    }
  };
};
