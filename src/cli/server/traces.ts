import type { Collector } from '../../actors/telemetry/export-spans.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Config } from '../config/config-schema.ts';
import { serverName, version } from '../version.ts';
import type { Assembled, ServerParts } from './assemble.ts';

const headersVariable = 'OTEL_EXPORTER_OTLP_HEADERS';

const decodedHeader = (text: string): string => {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    throw new ConfigError(
      `${headersVariable} holds a wrong percent code; write name=value,name=value`,
    );
  }
};

/** `name=value,name=value` with percent codes, as OpenTelemetry writes it. @throws ConfigError */
export const traceHeaders = (env: NodeJS.ProcessEnv): Readonly<Record<string, string>> => {
  const pairs = (env[headersVariable] ?? '').split(',').filter((pair) => pair.trim() !== '');
  const headers = pairs.map((pair): readonly [string, string] => {
    const [name = '', ...value] = pair.split('=');
    return [name.trim(), decodedHeader(value.join('='))];
  });
  try {
    return Object.fromEntries(new Headers(headers.map(([name, value]) => [name, value])));
  } catch {
    throw new ConfigError(`${headersVariable} holds a wrong header; write name=value,name=value`);
  }
};

/** Null when no traces are sent. */
export const collectorOf = (
  { telemetry: { otlp_endpoint: endpoint } }: Config,
  env: NodeJS.ProcessEnv,
): Collector | null => {
  if (endpoint === undefined) return null;
  const url = new URL(endpoint);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`;
  return { url: url.href, headers: traceHeaders(env) };
};

/** Loads the code for traces only when they are sent. */
export const startTraces = async (
  { current, env, project, redact, logger }: ServerParts,
  { system }: Assembled,
): Promise<{ stop(): Promise<void> }> => {
  const collector = collectorOf(current.loaded.config, env);
  if (collector === null) return { stop: async () => {} };
  const { traceJournal } = await import('../../actors/telemetry/trace-journal.ts');
  return traceJournal({
    journal: system.journal,
    project: project.stateDir,
    collector,
    resource: { serviceName: env['OTEL_SERVICE_NAME'] || serverName, version },
    redact,
    log: logger.log,
  });
};
