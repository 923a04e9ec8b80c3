import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const folder = new URL('../../../dist/recording/', import.meta.url);

/** The program of an exported file. */
export interface RecordingPage {
  readonly script: string;
  readonly style: string;
  /** SHA-256 (hex) of both. */
  readonly digest: string;
}

export const readRecordingPage = (): RecordingPage => {
  const [script, style] = ['recording.js', 'recording.css'].map((name) =>
    readFileSync(new URL(name, folder), 'utf8'),
  ) as [string, string];
  const digest = createHash('sha256').update(`${script}\n${style}`).digest('hex');
  return { script, style, digest };
};
