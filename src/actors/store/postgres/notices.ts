import type { Connection } from './connect.ts';

export interface Notices {
  close(): void;
}

interface NoticesOptions {
  readonly open: () => Promise<Connection>;
  readonly channel: string;
  /** The payload, and the process of the database server that sent it. */
  readonly heard: (payload: string, backend: number) => void;
  /** It listens, for the first time or again: what was sent before is not told. */
  readonly listening: () => void;
}

const pausesMs = [100, 500, 2_000, 5_000];

/** Listens for what others tell, on a connection of its own, and connects again when it is lost. */
export const listenFor = ({ open, channel, heard, listening }: NoticesOptions): Notices => {
  let connection: Connection | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let failures = 0;

  const again = (): void => {
    connection = null;
    if (isClosed) return;
    const pauseMs = pausesMs[Math.min(failures, pausesMs.length - 1)];
    failures += 1;
    timer = setTimeout(() => void start(), pauseMs).unref();
  };
  const start = async (): Promise<void> => {
    try {
      const opened = await open();
      if (isClosed) return opened.close();
      connection = opened;
      opened.onNotice(heard);
      await opened.queries(`listen ${channel}`);
      opened.onEnd(again);
      if (!opened.isOpen()) return again();
      failures = 0;
      listening();
    } catch {
      connection?.close();
      again();
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
