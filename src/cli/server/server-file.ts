import { readFileSync } from 'node:fs';
import { isJsonObject, textIn } from '../../machines/json.ts';

/** The address of a running server, for the commands. */
export interface ServerFile {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  /** RFC 3339. */
  readonly started_at: string;
  /** Older servers do not write this or the next. */
  readonly project?: string;
  /** The file that `--config` or `AGENT_SERVER_CONFIG` named; empty when none did. */
  readonly config?: string;
  /** `server.token_file`; left out when the token is in the state folder. */
  readonly token_file?: string;
}

/** Null when the file is missing or invalid. */
export const readServerFile = (path: string): ServerFile | null => {
  try {
    const file: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const [url, version, startedAt] = ['url', 'version', 'started_at'].map((key) =>
      textIn(file, key),
    );
    const pid = isJsonObject(file) ? file['pid'] : undefined;
    if (url == null || version == null || startedAt == null || typeof pid !== 'number') return null;
    const [project, config, tokenFile] = ['project', 'config', 'token_file'].map((key) =>
      textIn(file, key),
    );
    return {
      url: new URL(url).origin,
      pid,
      version,
      started_at: startedAt,
      project: project ?? undefined,
      config: config ?? undefined,
      token_file: tokenFile ?? undefined,
    };
  } catch {
    return null;
  }
};
