/** Text in pieces, as lines. */
export interface LineSplitter {
  push(text: string): void;
  /** The last line may lack its end. */
  end(): void;
}

export interface LineSplitterOptions {
  /** A longer line is dropped, in characters. */
  readonly longest: number;
  readonly onLine: (line: string) => void;
  readonly onDropped: () => void;
}

/** Splits at `\n` alone: JSON text may hold U+2028, at which other readers of lines split too. Holds one line at most. */
export const createLineSplitter = ({ longest, onLine, onDropped }: LineSplitterOptions): LineSplitter => {
  let held = '';
  let dropping = false;

  const hold = (piece: string): void => {
    if (dropping) return;
    held += piece;
    if (held.length <= longest) return;
    held = '';
    dropping = true;
    onDropped();
  };
  const end = (): void => {
    const line = held.trim();
    held = '';
    dropping = false;
    if (line !== '') onLine(line);
  };

  return {
    push: (text) => {
      const pieces = text.split('\n');
      const last = pieces.pop() ?? '';
      for (const piece of pieces) {
        hold(piece);
        end();
      }
      hold(last);
    },
    end,
  };
};
