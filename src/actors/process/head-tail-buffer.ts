/** The most bytes (UTF-8) that one tool result carries to the model. */
export const maxResultBytes = 16 * 1024;

export interface Bounds {
  readonly headBytes: number;
  readonly tailBytes: number;
}

export interface HeadTailBuffer {
  push(text: string): void;
  read(): { readonly text: string; readonly truncatedBytes: number };
}

const continuesCharacter = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80;

const headOf = (data: Buffer, bytes: number): Buffer => {
  let end = Math.min(bytes, data.length);
  while (end > 0 && continuesCharacter(data[end])) end -= 1;
  return data.subarray(0, end);
};

const tailOf = (data: Buffer, bytes: number): Buffer => {
  let start = Math.max(0, data.length - bytes);
  while (continuesCharacter(data[start])) start += 1;
  return data.subarray(start);
};

/** Keeps at most `headBytes` + `tailBytes`; never cuts inside a character. */
export const createHeadTailBuffer = ({ headBytes, tailBytes }: Bounds): HeadTailBuffer => {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let headIsFull = false;
  let totalBytes = 0;

  const fillHead = (text: string): string => {
    const part = headOf(Buffer.from(text), headBytes - head.length).toString();
    head = Buffer.concat([head, Buffer.from(part)]);
    headIsFull = part.length < text.length;
    return text.slice(part.length);
  };

  const push = (text: string): void => {
    totalBytes += Buffer.byteLength(text);
    const rest = headIsFull ? text : fillHead(text);
    if (rest === '' || tailBytes === 0) return;
    // A character has at least one byte: nothing before these can be in the tail.
    const last = Buffer.from(rest.slice(-tailBytes));
    tail = Buffer.from(tailOf(Buffer.concat([tail, last]), tailBytes));
  };

  const read = () => {
    const truncatedBytes = totalBytes - head.length - tail.length;
    const gap = truncatedBytes > 0 ? `\n[${truncatedBytes} bytes left out here]\n` : '';
    return { text: `${head.toString()}${gap}${tail.toString()}`, truncatedBytes };
  };

  return { push, read };
};

export const keepHeadAndTail = (text: string, bytes: number): string => {
  if (Buffer.byteLength(text) <= bytes) return text;

  const headBytes = Math.floor(bytes / 4);
  const spareForTheGap = 64;
  const kept = createHeadTailBuffer({
    headBytes,
    tailBytes: Math.max(0, bytes - headBytes - spareForTheGap),
  });
  kept.push(text);
  return kept.read().text;
};

export const keepHead = (text: string, bytes: number): string =>
  headOf(Buffer.from(text), bytes).toString();

/** Keeps as many whole lines as fit into `bytes`. Returns them and their number. */
export const keepWholeLines = (
  lines: readonly string[],
  bytes: number,
): { readonly text: string; readonly count: number } => {
  let used = 0;
  let count = 0;
  for (const line of lines) {
    used += Buffer.byteLength(line) + 1;
    if (used > bytes) break;
    count += 1;
  }
  return { text: lines.slice(0, count).join('\n'), count };
};
