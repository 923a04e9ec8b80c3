import type { Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { createDisplay } from '../graph/display.ts';
import { createProgress } from '../graph/progress.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { openBoardScreen } from './board-screen.ts';
import { createBoardTasks } from './board-tasks.ts';

const reloadMs = 10_000;

/** Reads the list again at intervals, one reading at a time; the stream tells of a lost server. */
const reloadOften = (reload: () => Promise<void>, signal: AbortSignal): void => {
  let later: NodeJS.Timeout | undefined;
  const again = (): void => {
    if (signal.aborted) return;
    later = setTimeout(() => void reload().then(again, again), reloadMs);
  };
  signal.addEventListener('abort', () => clearTimeout(later), { once: true });
  again();
};

/** A board on a terminal that is kept up to date until somebody quits. */
const showBoard = async ({ io }: CommandContext, client: Client): Promise<number> => {
  const abort = new AbortController();
  const { signal } = abort;
  const tasks = createBoardTasks(client, createProgress());
  // The stream begins first, so that nothing is missed.
  const frames = client.frames(null, null, signal)[Symbol.asyncIterator]();
  let next = frames.next();
  await tasks.load(io);
  const screen = openBoardScreen(io, tasks.board);
  const reload = async (): Promise<void> => {
    await tasks.load(io);
    screen.changed();
  };
  const follow = async (): Promise<number> => {
    for (;;) {
      const { done, value } = await next;
      if (done === true) return exitCodes.done;
      tasks.see(value);
      screen.changed();
      next = frames.next();
    }
  };
  try {
    reloadOften(reload, signal);
    return await Promise.race([screen.left, follow()]);
  } finally {
    abort.abort();
    screen.stop();
  }
};

/** One line for each change, without end; with `--json` each frame. */
const printChanges = async ({ io, json }: CommandContext, client: Client): Promise<number> => {
  const abort = new AbortController();
  const progress = createProgress();
  const display = createDisplay({ io, json, progress, followed: () => [] });
  for await (const frame of client.frames(null, null, abort.signal)) {
    display.see(frame);
    await io.room();
  }
  return exitCodes.done;
};

/** `agent watch` */
export const watchBoard = async (context: CommandContext): Promise<number> => {
  const client = await context.connection.server();
  const isScreen = !context.json && context.io.terminal() !== null && process.stdin.isTTY === true;
  return isScreen ? showBoard(context, client) : printChanges(context, client);
};
