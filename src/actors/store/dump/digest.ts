import { createHash } from 'node:crypto';

/** Count and hash of the rows of a table, so that two copies can be compared. */
export interface TableDigest {
  readonly rows: number;
  /** Hexadecimal, of its rows as lines of JSON. */
  readonly sha256: string;
}

export const createDigest = () => {
  const hash = createHash('sha256');
  let rows = 0;
  return {
    add: (line: string): void => {
      hash.update(`${line}\n`);
      rows += 1;
    },
    end: (): TableDigest => ({ rows, sha256: hash.digest('hex') }),
  };
};
