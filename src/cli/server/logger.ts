import pino from 'pino';
import { defaultFile, type LoadedConfig } from '../config/config.ts';
import type { Config } from '../config/config-schema.ts';
import { originOf } from '../config/key-paths.ts';
import type { TrackerLog } from '../config/tracker.ts';
import { print, printJson } from '../output/io.ts';
import { escapeControls, oneLine } from '../output/safe-text.ts';

export interface Logger {
  readonly log: TrackerLog;
  configure(logging: Logging): void;
}

export type Logging = Config['logging'] & { readonly isFormatChosen: boolean };

export const loggingOf = ({
  config,
  layers,
}: Pick<LoadedConfig, 'config' | 'layers'>): Logging => ({
  ...config.logging,
  isFormatChosen: !['default', defaultFile()].includes(originOf(layers, 'logging.format')),
});

const debugMessages = new Set(['request', 'model call ended', 'tool call ended']);

/** The first facts of a line: what it is about. */
const subjects = ['task_id', 'attempt', 'step'];

const valueText = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
};

/** One line for people: `2026-11-22T20:00:00.000Z info a message task_id=bd-a1 attempt=2`. */
const asText = (line: string): string => {
  const {
    time,
    level,
    msg,
    pid: _,
    hostname: __,
    ...facts
  } = JSON.parse(line) as Record<string, unknown>;
  const first = subjects.filter((name) => name in facts);
  const names = [...first, ...Object.keys(facts).filter((name) => !first.includes(name))];
  const words = names.map((name) => `${name}=${valueText(facts[name])}`);
  const said = `${pino.levels.labels[Number(level)] ?? level} ${oneLine(String(msg), 1_000)}`;
  return `${[new Date(Number(time)).toISOString(), said, ...words.map(escapeControls)].join(' ')}\n`;
};

const isText = ({ format, isFormatChosen }: Logging): boolean =>
  format === 'text' || (!isFormatChosen && process.stderr.isTTY === true);

/** Logs to standard error, without headers, bodies or secrets. */
export const createLogger = (logging: Logging, redact: (text: string) => string): Logger => {
  let text = isText(logging);
  const write = (line: string): void => {
    const safe = redact(line);
    if (text) print('stderr', asText(safe));
    else printJson('stderr', safe.trimEnd());
  };
  const logger = pino(
    { level: logging.level, serializers: { error: pino.stdSerializers.err } },
    { write },
  );
  return {
    log: (message, facts) => {
      if ('error' in facts) logger.error(facts, message);
      else if (debugMessages.has(message)) logger.debug(facts, message);
      else logger.info(facts, message);
    },
    configure: (next) => {
      logger.level = next.level;
      text = isText(next);
    },
  };
};
