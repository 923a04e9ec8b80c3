import { readFileSync } from 'node:fs';
import { isJson, textIn } from '../client/json.ts';

/** The address of a running server, for the commands. */
export interface ServerFile {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  /** RFC 3339. */
  readonly started_at: string;
  /** Older servers do not write this. */
  readonly project?: string;
}

/** Null when the file is missing or invalid. */
export const readServerFile = (path: string): ServerFile | null => {
  try {
    const file: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const [url, version, startedAt] = ['url', 'version', 'started_at'].map((key) =>
      textIn(file, key),
    );
    const pid = isJson(file) ? file['pid'] : undefined;
    if (url == null || version == null || startedAt == null || typeof pid !== 'number') return null;
    const project = textIn(file, 'project');
    const served = project === null ? {} : { project };
    return { url: new URL(url).origin, pid, version, started_at: startedAt, ...served };
  } catch {
    return null;
  }
};
