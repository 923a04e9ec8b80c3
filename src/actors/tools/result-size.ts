import { maxResultBytes } from '../process/head-tail-buffer.ts';

/** The limit for the lines of a result; the rest has room for the note after them. */
export const maxLinesBytes = maxResultBytes - 256;
