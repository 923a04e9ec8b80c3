import type { Collector } from '../../actors/telemetry/export-spans.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { serverName, version } from '../version.ts';
import type { Assembled, ServerParts } from './assemble.ts';

const headersVariable = 'OTEL_EXPORTER_OTLP_HEADERS';

/** As they are written, with percent codes. */
const headerPairs = (env: NodeJS.ProcessEnv): [name: string, value: string][] =>
  (env[headersVariable] ?? '')
    .split(',')
    .filter((pair) => pair.trim() !== '')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [name.trim(), value.join('=').trim()];
    });

const withoutCodes = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

const decodedHeader = (text: string): string => {
  const value = withoutCodes(text);
  if (value !== null) return value;
  throw new ConfigError(
    `${headersVariable} holds a wrong percent code; write name=value,name=value`,
  );
};

/** The values of the headers, also of those that cannot be sent. Never throws. */
export const traceSecrets = (env: NodeJS.ProcessEnv): readonly string[] =>
  headerPairs(env).flatMap(([, value]) => [value, withoutCodes(value) ?? value]);

/** `name=value,name=value` with percent codes, as OpenTelemetry writes it. @throws ConfigError */
export const traceHeaders = (env: NodeJS.ProcessEnv): Readonly<Record<string, string>> => {
  const headers = headerPairs(env).map(([name, value]): [string, string] => [
    name,
    decodedHeader(value),
  ]);
  // The class loads the whole HTTP client of Node.
  if (headers.length === 0) return {};
  try {
    return Object.fromEntries(new Headers(headers));
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
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/v1/traces`;
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
