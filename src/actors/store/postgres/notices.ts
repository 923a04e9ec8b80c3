import type { PostgresConnection } from './connect.ts';

export interface Notices {
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
export const listenFor = ({ open, channel, heard, look }: NoticesOptions): Notices => {
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
