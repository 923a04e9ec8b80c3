import { closeSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

const pieceBytes = 256 * 1024;

/** The lines of a file, read as they are taken; a last one that is cut off is left out. @throws what the disk says */
export function* readLinesOf(path: string): Generator<string, void> {
  const file = openSync(path, 'r');
  try {
    const piece = Buffer.alloc(pieceBytes);
    const decoder = new StringDecoder('utf8');
    let rest = '';
    for (;;) {
      const bytes = readSync(file, piece);
      if (bytes === 0) break;
      const lines = (rest + decoder.write(piece.subarray(0, bytes))).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(file);
  }
}
