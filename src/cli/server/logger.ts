import pino from 'pino';
import { defaultFile, type LoadedConfig } from '../config/config.ts';
import type { Config } from '../config/config-schema.ts';
import { originOf } from '../config/key-paths.ts';
import type { TrackerLog } from '../config/tracker.ts';
import { type Outputs, print, printJson } from '../output/io.ts';
import { logText } from './log-text.ts';

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
