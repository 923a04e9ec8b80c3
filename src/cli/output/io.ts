import { type AskPerson, createAsk } from './ask.ts';
import { escapeControls, oneLine, stripControls } from './safe-text.ts';
import { type Text, takesColour, terminalText } from './styled.ts';
import { textWidth, wrapLines } from './wrap.ts';

/** Shows on a terminal what changes. Without a terminal it does nothing. */
export interface LiveScreen {
  /** Replaces the live line of a terminal. Empty text clears it. */
  readonly live: (text: string) => void;
  /** Replaces the live lines of a terminal. No lines clear them. */
  readonly liveLines: (lines: readonly Text[]) => void;
  /** A person pressed Enter below the live lines: the cursor is one row lower. */
  readonly typedLine: () => void;
  /**
   * Fills the terminal with these lines, and null leaves it as it was before. Notes wait until then.
   */
  readonly screen: (lines: readonly Text[] | null) => void;
  /** Columns and rows of the terminal as it is now; null when there is none. */
  readonly terminal: () => { readonly columns: number; readonly rows: number } | null;
}

/** Results go to stdout, notes and warnings to stderr. Removes control characters. */
export interface Io extends LiveScreen {
  /** Columns of the terminal; null when stdout is none. */
  readonly width: number | null;
  /** Null when nobody is there to answer. */
  readonly ask: AskPerson | null;
  /** True when a pager may show long output. */
  readonly pages: boolean;
  readonly out: (text: Text) => void;
  readonly json: (value: unknown) => void;
  /** Text for a program, as it is; a terminal gets it without control characters. */
  readonly verbatim: (text: string) => void;
  /** On a terminal, lines that are too wide break between words. */
  readonly err: (text: string) => void;
  /** Resolves when a slow reader has taken enough of what was written. */
  readonly room: () => Promise<void>;
}

interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly writableNeedDrain?: boolean;
  once?(event: 'drain', listener: () => void): unknown;
  write(text: string): unknown;
}

type Stream = 'stdout' | 'stderr';

export type Outputs = Readonly<Record<Stream, Pick<Output, 'isTTY' | 'write'>>>;

/** These two and `processIo` are the only writers to the terminal. */
export const print = (stream: Stream, text: string, to: Outputs = process): void =>
  void to[stream].write(stripControls(text));

export const printJson = (stream: Stream, json: string, to: Outputs = process): void =>
  void to[stream].write(`${escapeControls(json)}\n`);

const oneScreenLine = (text: string): string => text.replace(/[\n\t]/g, ' ');

type Environment = Readonly<Record<string, string | undefined>>;

/** The alternate screen, without a cursor and without wrapping: no line can move another. */
const openScreen = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const closeScreen = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const heldAtMost = 100;
const usualColumns = 80;
export const usualRows = 24;

const terminalColumns = ({ columns }: Output): number => columns || usualColumns;

/** The last lines of a terminal, which others replace. */
const createLiveLines = (stderr: Output, terminal: boolean, colour: boolean) => {
  /** Columns of each line that is shown. */
  let shown: readonly number[] = [];
  const clear = (): void => {
    if (shown.length === 0) return;
    // A terminal that became narrower has wrapped the lines.
    const columns = terminalColumns(stderr);
    const rows = shown.reduce((sum, each) => sum + Math.max(1, Math.ceil(each / columns)), 0);
    stderr.write(`\r${rows > 1 ? `\u001b[${rows - 1}A` : ''}\u001b[J`);
    shown = [];
  };
  return {
    clear,
    live: (text: string): void => {
      if (!terminal) return;
      clear();
      if (text === '') return;
      const line = oneLine(text, terminalColumns(stderr) - 1);
      stderr.write(line);
      shown = [textWidth(line)];
    },
    liveLines: (lines: readonly Text[]): void => {
      if (!terminal) return;
      clear();
      stderr.write(lines.map((line) => terminalText(line, colour)).join('\n'));
      shown = lines.map((line) => textWidth(terminalText(line, false)));
    },
    typedLine: (): void => {
      if (shown.length > 0) shown = [...shown, 0];
    },
  };
};

export const createIo = (
  stdout: Output,
  stderr: Output,
  env: Environment = {},
  ask: AskPerson | null = null,
): Io => {
  const terminal = stdout.isTTY === true && stderr.isTTY === true;
  const colour = takesColour(stdout.isTTY === true, env);
  const { clear, ...liveLines } = createLiveLines(stderr, terminal, colour);
  let isScreen = false;
  /** Notes wait here while a screen is shown, each once. */
  const held = new Set<string>();
  const columns = (): number => terminalColumns(stderr);
  const fitted = (text: string): string =>
    wrapLines(text, stderr.isTTY === true ? columns() : null);
  return {
    width: stdout.isTTY === true ? stdout.columns || usualColumns : null,
    ask,
    pages: false,
    out: (text) => {
      clear();
      stdout.write(`${terminalText(text, colour)}\n`);
    },
    json: (value) => {
      clear();
      stdout.write(`${escapeControls(JSON.stringify(value))}\n`);
    },
    verbatim: (text) => {
      clear();
      stdout.write(stdout.isTTY === true ? stripControls(text) : text);
    },
    err: (text) => {
      if (isScreen) {
        if (held.size < heldAtMost) held.add(text);
        return;
      }
      clear();
      stderr.write(stripControls(`${fitted(text)}\n`));
    },
    ...liveLines,
    screen: (lines) => {
      if (!terminal || (lines === null && !isScreen)) return;
      if (lines !== null) {
        clear();
        const rows = lines.map((line) => `${oneScreenLine(terminalText(line, colour))}\u001b[K`);
        stderr.write(`${isScreen ? '' : openScreen}\u001b[H${rows.join('\r\n')}\u001b[J`);
        isScreen = true;
        return;
      }
      stderr.write(closeScreen);
      isScreen = false;
      stderr.write(stripControls([...held].map((text) => `${fitted(text)}\n`).join('')));
      held.clear();
    },
    room: () =>
      stdout.writableNeedDrain === true
        ? new Promise((resolve) => stdout.once?.('drain', resolve))
        : Promise.resolve(),
    terminal: () => (terminal ? { columns: columns(), rows: stderr.rows || usualRows } : null),
  };
};

export const processIo = (): Io => {
  const { stdout, stderr, env } = process;
  // Node opens the input at its first use, which takes a twentieth of `agent list`.
  const ask = stdout.isTTY && process.stdin.isTTY ? createAsk(process.stdin, stdout) : null;
  return { ...createIo(stdout, stderr, env, ask), pages: stdout.isTTY === true };
};
