/** The longest line of JSON that is read from an assistant (characters). */
export const maxEventLine = 8 * 1024 * 1024;

export interface LineSplitter {
  push(text: string): void;
  end(): void;
}

export interface LineSplitterOptions {
  /** Longer lines are dropped (characters). */
  readonly longest: number;
  readonly onLine: (line: string) => void;
  readonly onDropped: () => void;
  /** Gets the pieces of a line that is dropped, from its beginning; null: its end. */
  readonly onDroppedText?: (piece: string | null) => void;
  /** Whether `onLine` gets empty lines, too. */
  readonly keepsEmpty?: boolean;
}

/**
 * Splits at `\n` alone: JSON text may hold U+2028, at which other line readers split. Buffers one
 * line at most.
 */
export const createLineSplitter = ({
  longest,
  onLine,
  onDropped,
  onDroppedText,
  keepsEmpty = false,
}: LineSplitterOptions): LineSplitter => {
  let buffered = '';
  let dropping = false;

  const append = (piece: string): void => {
    if (dropping) {
      onDroppedText?.(piece);
      return;
    }
    buffered += piece;
    if (buffered.length <= longest) return;
    const beginning = buffered;
    buffered = '';
    dropping = true;
    onDropped();
    onDroppedText?.(beginning);
  };
  const end = (): void => {
    const line = buffered.trim();
    buffered = '';
    if (dropping) onDroppedText?.(null);
    dropping = false;
    if (line !== '' || keepsEmpty) onLine(line);
  };

  return {
    push: (text) => {
      const pieces = text.split('\n');
      const last = pieces.pop() ?? '';
      for (const piece of pieces) {
        append(piece);
        end();
      }
      append(last);
    },
    end,
  };
};

interface EventReaderOptions {
  /** Longer events call `onTooLong` (characters). */
  readonly longest: number;
  readonly onData: (data: string) => void;
  readonly onTooLong: () => void;
  /** How to go on after the stream was cut: an `id`, or a `retry` (ms). */
  readonly onResume?: (field: 'id' | 'retry', value: string) => void;
}

/** Reads the data of server-sent events. Its time is linear, whatever the pieces are. */
export const createEventReader = ({
  longest,
  onData,
  onTooLong,
  onResume,
}: EventReaderOptions): Pick<LineSplitter, 'push'> => {
  let data: string[] = [];
  let length = 0;
  return createLineSplitter({
    longest,
    keepsEmpty: true,
    onDropped: onTooLong,
    onLine: (line) => {
      if (line === '') {
        const whole = data.join('\n');
        [data, length] = [[], 0];
        if (whole !== '') onData(whole);
      } else if (line.startsWith('data:')) {
        data.push(line.slice('data:'.length).trim());
        length += line.length;
        if (length > longest) onTooLong();
      } else if (line.startsWith('id:')) onResume?.('id', line.slice('id:'.length).trim());
      else if (line.startsWith('retry:')) onResume?.('retry', line.slice('retry:'.length).trim());
    },
  });
};
