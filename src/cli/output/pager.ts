import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { exitCodes } from './exit-codes.ts';
import { type Io, usualRows } from './io.ts';
import { type Text, takesColour, terminalText } from './styled.ts';
import { textWidth } from './wrap.ts';

/** The prompt of the shell. */
const otherRows = 1;

const terminalRows = (text: Text, columns: number): number =>
  terminalText(text, false)
    .split('\n')
    .reduce((sum, line) => sum + Math.max(1, Math.ceil(textWidth(line) / columns)), 0);

/** A shell may be told variables first: `LESS=-S less`. */
const isInstalled = (program: string, env: NodeJS.ProcessEnv): boolean => {
  const name = program.split(/\s+/).find((word) => !word.includes('=')) ?? '';
  return spawnSync('/bin/sh', ['-c', 'command -v "$0" >/dev/null', name], { env }).status === 0;
};

/** less leaves the text on the screen and obeys colours, as with git. */
const startPager = (program: string, env: NodeJS.ProcessEnv): ChildProcess => {
  const child = spawn('/bin/sh', ['-c', program], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', LV: '-c', ...env },
  });
  // The reader may leave before the end.
  child.stdin?.on('error', () => {});
  return child;
};

const ignore = (): void => {};

export const createPagedIo = (io: Io, program: string, env: NodeJS.ProcessEnv) => {
  const colour = takesColour(true, env);
  const screenRows = (process.stdout.rows || usualRows) - otherRows;
  let rows = 0;
  let waiting: Text[] = [];
  let held: string[] = [];
  let child: ChildProcess | null = null;
  let isDirect = false;
  let leave = (_code: number): void => {};
  const left = new Promise<number>((resolve) => {
    leave = resolve;
  });

  const write = (text: Text): void => void child?.stdin?.write(`${terminalText(text, colour)}\n`);
  const flush = (print: (text: Text) => void): void => {
    for (const text of waiting) print(text);
    waiting = [];
  };
  const open = (): void => {
    if (!isInstalled(program, env)) {
      isDirect = true;
      io.err(`note: the pager ${program} cannot be found; PAGER names another`);
      flush(io.out);
      return;
    }
    // Ctrl-C is for the pager.
    process.on('SIGINT', ignore);
    child = startPager(program, env);
    child.once('close', () => leave(exitCodes.done));
    flush(write);
  };
  const paged: Io = {
    ...io,
    out: (text) => {
      if (isDirect) return io.out(text);
      if (child !== null) return write(text);
      waiting.push(text);
      rows += terminalRows(text, io.width ?? Number.POSITIVE_INFINITY);
      if (rows > screenRows) open();
    },
    err: (text) => (child === null ? io.err(text) : void held.push(text)),
    live: (text) => (child === null ? io.live(text) : undefined),
    room: async () => {
      if (child?.stdin?.writableNeedDrain === true)
        await Promise.race([once(child.stdin, 'drain'), left]);
    },
  };
  return {
    io: paged,
    /** The exit code, when the reader left the pager. */
    left,
    end: async (): Promise<void> => {
      flush(io.out);
      if (child === null) return;
      child.stdin?.end();
      await left;
      process.off('SIGINT', ignore);
      for (const text of held) io.err(text);
      held = [];
    },
  };
};
