import type { Project } from './project.ts';

/** `source` names the variable or flag. */
export interface Override {
  readonly source: string;
  readonly path: readonly [section: string, key: string];
  readonly value: unknown;
}

export interface ConfigFlags {
  /** The project whose configuration in the user's folder counts. */
  readonly project?: Pick<Project, 'defaultDir'>;
  readonly config?: string | undefined;
  /** A text that counts in place of a file, which is not written yet. */
  readonly draft?: { readonly file: string; readonly text: string } | undefined;
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly maxConcurrent?: number | undefined;
  readonly store?: string | undefined;
}

const parseNumber = (text: string): unknown => (/^\d+$/.test(text) ? Number(text) : text);

const fromEnvironment = (env: NodeJS.ProcessEnv): readonly Override[] => {
  const read = (
    source: string,
    path: Override['path'],
    parse: (text: string) => unknown = (text) => text,
  ) => {
    const text = env[source];
    return text === undefined || text === '' ? [] : [{ source, path, value: parse(text) }];
  };
  return [
    ...read('SERVER_HOST', ['server', 'host']),
    ...read('SERVER_PORT', ['server', 'port'], parseNumber),
    ...read('MAX_CONCURRENT_AGENTS', ['server', 'max_concurrent_agents'], parseNumber),
    ...read('API_MODE', ['api', 'mode']),
    ...read('OPENAI_BASE_URL', ['api', 'base_url']),
    ...read('LOG_LEVEL', ['logging', 'level']),
    ...read('LOG_FORMAT', ['logging', 'format']),
    ...read('OTEL_EXPORTER_OTLP_ENDPOINT', ['telemetry', 'otlp_endpoint']),
  ];
};

const fromFlags = ({ port, host, maxConcurrent, store }: ConfigFlags): readonly Override[] => [
  ...(port === undefined
    ? []
    : [{ source: '--port', path: ['server', 'port'] as const, value: port }]),
  ...(host === undefined
    ? []
    : [{ source: '--host', path: ['server', 'host'] as const, value: host }]),
  ...(store === undefined
    ? []
    : [{ source: '--store', path: ['store', 'url'] as const, value: store }]),
  ...(maxConcurrent === undefined
    ? []
    : [
        {
          source: '--max-concurrent',
          path: ['server', 'max_concurrent_agents'] as const,
          value: maxConcurrent,
        },
      ]),
];

/** Later overrides win. */
export const overridesFrom = (flags: ConfigFlags, env: NodeJS.ProcessEnv): readonly Override[] => [
  ...fromEnvironment(env),
  ...fromFlags(flags),
];
