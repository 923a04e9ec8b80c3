import type { Row } from '../rows/rows.ts';
import type { PostgresConnection } from './connect.ts';
import { beginMs, endColumns, type JournalEnd } from './transactions.ts';

interface Notices {
  close(): void;
}

interface NoticesOptions {
  readonly open: () => Promise<PostgresConnection>;
  readonly channel: string;
  /** The payload, and the process of the database server that sent it. */
  readonly heard: (payload: string, backend: number) => void;
  /**
   * Asks on the connection for what may not have been told: when it begins to listen, and every 15 s.
   * A connection that was cut without a word is noticed by this.
   */
  readonly look: (connection: PostgresConnection) => Promise<void>;
}

const pausesMs = [100, 500, 2_000, 5_000];
const lookEveryMs = 15_000;

/** Listens for what others tell, on a connection of its own, and connects again when it is lost. */
const listenFor = ({ open, channel, heard, look }: NoticesOptions): Notices => {
  let connection: PostgresConnection | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let failures = 0;

  const again = (): void => {
    clearTimeout(timer);
    connection = null;
    if (isClosed) return;
    const pauseMs = pausesMs[Math.min(failures, pausesMs.length - 1)];
    failures += 1;
    timer = setTimeout(() => void start(), pauseMs).unref();
  };
  const lookLater = (opened: PostgresConnection): void => {
    timer = setTimeout(() => {
      look(opened).then(
        () => {
          if (opened.isOpen()) lookLater(opened);
        },
        () => opened.close(),
      );
    }, lookEveryMs).unref();
  };
  const start = async (): Promise<void> => {
    try {
      const opened = await open();
      if (isClosed) return opened.close();
      connection = opened;
      opened.onNotice(heard);
      opened.onEnd(again);
      await opened.queries(`listen ${channel}`);
      await look(opened);
      failures = 0;
      lookLater(opened);
    } catch {
      if (connection === null) again();
      else connection.close();
    }
  };
  void start();
  return {
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      connection?.close();
    },
  };
};

/** Hears of rows in `server_calls`. A notice is a hint: either may be called when nothing is there. */
interface CallListener {
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
