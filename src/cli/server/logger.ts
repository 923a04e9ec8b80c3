import pino from 'pino';
import type { Config } from '../config/config-schema.ts';
import type { TrackerLog } from '../config/tracker.ts';
import { print, printJson } from '../output/io.ts';
import { escapeControls, oneLine } from '../output/safe-text.ts';

export interface Logger {
  readonly log: TrackerLog;
  configure(logging: Config['logging']): void;
}

const asText = (line: string): string => {
  const { time, level, msg, ...facts } = JSON.parse(line) as Record<string, unknown>;
  const { pid: _, hostname: __, ...rest } = facts;
  return `${new Date(Number(time)).toISOString()} ${pino.levels.labels[Number(level)] ?? level} ${oneLine(String(msg), 1_000)} ${escapeControls(JSON.stringify(rest))}\n`;
};

/** Logs to standard error, without headers, bodies or secrets. */
export const createLogger = (
  logging: Config['logging'],
  redact: (text: string) => string,
): Logger => {
  let { format } = logging;
  const write = (line: string): void => {
    const safe = redact(line);
    if (format === 'json') printJson('stderr', safe.trimEnd());
    else print('stderr', asText(safe));
  };
  const logger = pino(
    { level: logging.level, serializers: { error: pino.stdSerializers.err } },
    { write },
  );
  return {
    log: (message, facts) => {
      if ('error' in facts) logger.error(facts, message);
      else if (message === 'request') logger.debug(facts, message);
      else logger.info(facts, message);
    },
    configure: (next) => {
      logger.level = next.level;
      format = next.format;
    },
  };
};
