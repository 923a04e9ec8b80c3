import { isJson } from '../client/json.ts';
import type { Config } from '../config/config-schema.ts';

/** The server reads these keys only when it starts. */
const fixed = [
  'server.host',
  'server.port',
  'server.register_protocol_handler',
  'tracker.mode',
  'tracker.bd_path',
  'tracker.actor',
  'sandbox.mode',
  'sandbox.memory_mb',
  'sandbox.read_paths',
  'workspace.mode',
  'workspace.copy',
  'workspace.filters',
] as const;

const valueAt = (config: Config, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (isJson(value) ? value[key] : undefined), config);

export const needsRestart = (before: Config, after: Config): readonly string[] =>
  fixed.filter(
    (path) => JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(after, path)),
  );
