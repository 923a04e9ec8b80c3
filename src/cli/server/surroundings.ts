import type { LoadedConfig } from '../config/config.ts';
import type { ConfigLayer } from '../config/key-paths.ts';
import type { Config } from '../config/schema/config-schema.ts';

/**
 * The variables and the configuration that a process took from the shell that started it. Of a key,
 * only that it is set.
 */
export interface ServerSurroundings {
  readonly node: string;
  readonly path: string;
  /** Names of the credential variables that are set. */
  readonly keys: readonly string[];
  readonly config: Config;
  /** Files, variables and flags by name; a later one overrides. */
  readonly layers: readonly ConfigLayer[];
}

export const surroundingsOf = (
  { config, layers }: Pick<LoadedConfig, 'config' | 'layers'>,
  credentials: Readonly<Record<string, string>>,
  path: string | undefined,
): ServerSurroundings => ({
  node: process.version,
  path: path ?? '',
  keys: Object.keys(credentials).toSorted(),
  config,
  layers,
});
