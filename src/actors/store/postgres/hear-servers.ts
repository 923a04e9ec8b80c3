import type { Row } from '../rows.ts';
import type { PostgresConnection } from './connect.ts';
import { endColumns, type JournalEnd } from './journal-end.ts';
import { listenFor } from './notices.ts';
import { beginMs } from './transactions.ts';

/** Hears of rows in `server_calls`. A notice is a hint: either may be called when nothing is there. */
export interface CallListener {
  /** This start of the server. */
  readonly node: string;
  readonly called: () => void;
  readonly answered: () => void;
}

/** Passes on what other servers tell. */
export interface ServerHearing {
  /**
   * Calls the listener after a commit of another process, or one of which no answer came. Whoever can
   * connect can send a notice with any number: it causes a look and is not believed.
   */
  onCommitOfOthers(listener: (lastSeq: number) => void): void;
  onNotice(listener: (notice: string) => void): void;
  /** Null: nobody listens any more. */
  onCalls(listener: CallListener | null): void;
  close(): void;
}

interface HearingOptions {
  readonly open: () => Promise<PostgresConnection>;
  readonly channel: string;
  readonly end: Pick<JournalEnd, 'read'>;
  /** The process of the database server that had our last write. */
  readonly ownBackend: () => number;
}

const lookText = `select ${endColumns}, exists (
    select from server_calls where node = $1 and taken is null and until > clock_ms()
  )::integer as called from journal_end`;
/** The answer of our own commit comes at the same time as its notice. */
const ownNoticeMs = 50;

export const hearServers = ({ open, channel, end, ownBackend }: HearingOptions): ServerHearing => {
  let tellOthers = (_: number): void => {};
  const noticeListeners: ((notice: string) => void)[] = [];
  let calls: CallListener | null = null;
  const heardOfCall = (payload: string): void => {
    if (payload === `call:${calls?.node}`) calls?.called();
    if (payload === `answer:${calls?.node}`) calls?.answered();
  };
  const look = async (connection: PostgresConnection): Promise<void> => {
    const values = [calls?.node ?? ''];
    const query = { name: 'look', text: lookText, values, deadlineMs: beginMs };
    let row: Row | undefined;
    const seq = await end.read(async () => {
      [row] = (await connection.query(query)).rows;
      return row;
    });
    tellOthers(seq);
    if (row?.['called'] === 1) calls?.called();
    calls?.answered();
  };
  const heardOfEntries = (seq: number, backend: number): void => {
    if (backend === ownBackend()) setTimeout(() => tellOthers(seq), ownNoticeMs).unref();
    else tellOthers(seq);
  };
  const heard = (payload: string, backend: number): void => {
    if (/^(?:call|answer):/.test(payload)) heardOfCall(payload);
    else if (/^\d/.test(payload)) heardOfEntries(Number(payload), backend);
    else for (const listener of noticeListeners) listener(payload);
  };
  const notices = listenFor({ open, channel, heard, look });
  return {
    onCommitOfOthers: (listener) => {
      tellOthers = listener;
    },
    onNotice: (listener) => void noticeListeners.push(listener),
    onCalls: (listener) => {
      calls = listener;
    },
    close: notices.close,
  };
};
