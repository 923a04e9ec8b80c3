import { valueAt } from '../config/key-paths.ts';
import type { Config } from '../config/schema/config-schema.ts';

/** The server reads these keys only when it starts. */
const fixed = [
  'server.host',
  'server.port',
  'server.register_protocol_handler',
  'server.token_file',
  'tracker.mode',
  'tracker.bd_path',
  'tracker.actor',
  'tracker.export_node',
  'sandbox.mode',
  'sandbox.memory_mb',
  'sandbox.read_paths',
  'workspace.mode',
  'workspace.copy',
  'workspace.filters',
  'store.url',
  'store.lease_seconds',
  'notify.webhooks',
  'forge.webhook_secret_env',
  'notify.commands',
  'telemetry.otlp_endpoint',
] as const;

export const needsRestart = (before: Config, after: Config): readonly string[] =>
  fixed.filter(
    (path) => JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(after, path)),
  );
