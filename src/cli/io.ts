import { stripVTControlCharacters } from 'node:util';

/** Where a command writes: results to stdout, notes and warnings to stderr. */
export interface Io {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Replaces the live line of a terminal; empty clears it. Nothing where there is no terminal. */
  readonly live: (text: string) => void;
}

export const processIo = (): Io => {
  const terminal = process.stdout.isTTY === true && process.stderr.isTTY === true;
  let shown = false;
  const clear = (): void => {
    if (shown) process.stderr.write('\r\u001b[K');
    shown = false;
  };
  return {
    out: (text) => {
      clear();
      process.stdout.write(`${text}\n`);
    },
    err: (text) => {
      clear();
      process.stderr.write(`${text}\n`);
    },
    live: (text) => {
      if (!terminal) return;
      clear();
      if (text === '') return;
      process.stderr.write(text.slice(0, (process.stderr.columns ?? 80) - 1));
      shown = true;
    },
  };
};

/** Text that came from elsewhere, safe to show: no terminal control, no bidirectional overrides. */
export const plain = (text: string): string =>
  stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069\u200e\u200f]/gu, '');

export const oneLine = (text: string, width = 100): string => {
  const line = plain(text).replace(/\s+/g, ' ').trim();
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
};
