import { escapeControls, oneLine, stripControls } from './safe-text.ts';

/** Results go to stdout, notes and warnings to stderr. Removes control characters. */
export interface Io {
  readonly out: (text: string) => void;
  /** One value of JSON, in one line. */
  readonly json: (value: unknown) => void;
  readonly err: (text: string) => void;
  /** Replaces the live line of a terminal. Empty text clears it. */
  readonly live: (text: string) => void;
}

type Stream = 'stdout' | 'stderr';

/** `print` and `printJson` are the only ways to the terminal. */
export const print = (stream: Stream, text: string): void => void process[stream].write(stripControls(text));

export const printJson = (stream: Stream, json: string): void =>
  void process[stream].write(`${escapeControls(json)}\n`);

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
      print('stdout', `${text}\n`);
    },
    json: (value) => {
      clear();
      printJson('stdout', JSON.stringify(value));
    },
    err: (text) => {
      clear();
      print('stderr', `${text}\n`);
    },
    live: (text) => {
      if (!terminal) return;
      clear();
      if (text === '') return;
      print('stderr', oneLine(text, (process.stderr.columns ?? 80) - 1));
      shown = true;
    },
  };
};
