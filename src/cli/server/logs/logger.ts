import pino from 'pino';
import { isJsonObject, parseJson } from '../../../machines/json.ts';
import { defaultFile, type LoadedConfig } from '../../config/config.ts';
import { originOf } from '../../config/key-paths.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { TrackerLog } from '../../config/tracker.ts';
import { type Outputs, print, printJson } from '../../output/io.ts';
import { escapeControls, oneLine } from '../../output/safe-text.ts';

/** The first facts of a line: what it is about. */
const subjects = ['task_id', 'attempt', 'step'];

/** The levels of pino, without pino: a command that prints a log loads little. */
const levels: Readonly<Record<string, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

const valueText = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
};

/**
 * A JSON line of the log for people: `2026-11-22T20:00:00.000Z info a message task_id=bd-a1 attempt=2`.
 * Null for a line that is no such thing.
 */
export const logText = (line: string): string | null => {
  const found = parseJson(line);
  if (!isJsonObject(found) || typeof found['time'] !== 'number') return null;
  const { time: _, level, msg, pid: __, hostname: ___, ...facts } = found;
  const at = new Date(found['time']);
  if (Number.isNaN(at.getTime())) return null;
  const first = subjects.filter((name) => name in facts);
  const names = [...first, ...Object.keys(facts).filter((name) => !first.includes(name))];
  const words = names.map((name) => `${name}=${valueText(facts[name])}`);
  const said = `${levels[String(level)] ?? level} ${oneLine(String(msg), 1_000)}`;
  return [at.toISOString(), said, ...words.map(escapeControls)].join(' ');
};

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

const isTextFormat = ({ format, isFormatChosen }: Logging, { stderr }: Outputs): boolean =>
  format === 'text' || (!isFormatChosen && stderr.isTTY === true);

/** Logs to standard error, without headers, bodies or secrets. */
export const createLogger = (
  logging: Logging,
  redact: (text: string) => string,
  to: Outputs = process,
): Logger => {
  let text = isTextFormat(logging, to);
  const write = (line: string): void => {
    const safe = redact(line);
    if (text) print('stderr', `${logText(safe) ?? safe.trimEnd()}\n`, to);
    else printJson('stderr', safe.trimEnd(), to);
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
      text = isTextFormat(next, to);
    },
  };
};
