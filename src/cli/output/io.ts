import { escapeControls, oneLine, stripControls } from './safe-text.ts';
import { type Text, takesColour, terminalText } from './styled.ts';

/** Results go to stdout, notes and warnings to stderr. Removes control characters. */
export interface Io {
  /** Columns of the terminal; null when stdout is none. */
  readonly width: number | null;
  readonly out: (text: Text) => void;
  /** One JSON value in one line. */
  readonly json: (value: unknown) => void;
  readonly err: (text: string) => void;
  /** Replaces the live line of a terminal. Empty text clears it. */
  readonly live: (text: string) => void;
}

interface Output {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

type Stream = 'stdout' | 'stderr';

/** These two and `processIo` are the only writers to the terminal. */
export const print = (stream: Stream, text: string): void =>
  void process[stream].write(stripControls(text));

export const printJson = (stream: Stream, json: string): void =>
  void process[stream].write(`${escapeControls(json)}\n`);

type Environment = Readonly<Record<string, string | undefined>>;

const usualColumns = 80;

export const createIo = (stdout: Output, stderr: Output, env: Environment = {}): Io => {
  const terminal = stdout.isTTY === true && stderr.isTTY === true;
  const colour = takesColour(stdout.isTTY === true, env);
  let shown = false;
  const clear = (): void => {
    if (shown) stderr.write('\r\u001b[K');
    shown = false;
  };
  return {
    width: stdout.isTTY === true ? stdout.columns || usualColumns : null,
    out: (text) => {
      clear();
      stdout.write(`${terminalText(text, colour)}\n`);
    },
    json: (value) => {
      clear();
      stdout.write(`${escapeControls(JSON.stringify(value))}\n`);
    },
    err: (text) => {
      clear();
      stderr.write(stripControls(`${text}\n`));
    },
    live: (text) => {
      if (!terminal) return;
      clear();
      if (text === '') return;
      stderr.write(stripControls(oneLine(text, (stderr.columns ?? 80) - 1)));
      shown = true;
    },
  };
};

export const processIo = (): Io => createIo(process.stdout, process.stderr, process.env);
