import { isJsonObject, parseJson } from '../../../machines/json.ts';
import { type BdFailure, bdFailure, classifyBdText } from './failure.ts';
import type { BdOutput } from './runner.ts';

/** `value` is the printed JSON without its envelope. */
export type BdAnswer = { readonly value: unknown } | { readonly failure: BdFailure };

/** Versions of bd print one of three envelopes, or none. */
const unwrap = (value: unknown): unknown => {
  if (!isJsonObject(value) || !('schema_version' in value)) return value;
  if ('data' in value) return value['data'];
  return 'items' in value ? value['items'] : value;
};

/**
 * The JSON of stdout: all of it, or from the first line that starts JSON, after warnings and a byte
 * order mark.
 */
const jsonOnStdout = (stdout: string): unknown => {
  const text = stdout.replace(/^\uFEFF/, '').replace(/^(?:warning:.*\r?\n)+/i, '');
  const whole = parseJson(text);
  if (whole !== undefined) return unwrap(whole);
  const start = /^[[{]/m.exec(text)?.index;
  return start === undefined ? undefined : unwrap(parseJson(text.slice(start)));
};

const errorIn = (value: unknown): string | null =>
  isJsonObject(value) && typeof value['error'] === 'string' ? value['error'] : null;

const longestError = 64 * 1_024;

/** The error message on stderr, which may be JSON, also as its last line. */
const errorOn = (stderr: string): string => {
  const text = stderr.slice(-longestError).trim();
  const last = text.slice(text.lastIndexOf('\n') + 1);
  return errorIn(unwrap(parseJson(text))) ?? errorIn(unwrap(parseJson(last))) ?? text;
};

const processFailure = ({
  startError,
  timedOut,
  tooLarge,
  signal,
  stderr,
}: BdOutput): BdFailure | null => {
  if (startError === 'ENOENT') return bdFailure('absent', 'bd is not there');
  if (startError !== null) return bdFailure('broken', `bd cannot be started (${startError})`);
  if (timedOut) return bdFailure('timeout', 'bd did not answer in time');
  if (tooLarge) return bdFailure('too_large', 'bd printed more than can be read');
  if (signal !== null) return bdFailure('crash', `bd was ended by ${signal}. ${stderr}`);
  return null;
};

const knownExits: Readonly<Record<number, BdFailure>> = {
  13: bdFailure('stale', 'bd says that its data is stale (exit code 13)'),
  14: bdFailure('frozen', 'bd says that the project is frozen (exit code 14)'),
};

const withDefaultWords = (failure: BdFailure, exitCode: number | null): BdFailure =>
  failure.words === ''
    ? bdFailure(failure.kind, `bd ended with exit code ${exitCode} and printed nothing`)
    : failure;

/**
 * Reads bd's output. Exit code 0 is not enough: nothing on stdout and text on stderr is an error;
 * so is the message that it could not read the project's tasks, next to an empty list.
 */
export const readBdAnswer = (output: BdOutput): BdAnswer => {
  const { exitCode, stdout, stderr } = output;
  const broke = processFailure(output);
  if (broke !== null) return { failure: broke };
  const exit = exitCode === null ? undefined : knownExits[exitCode];
  if (exit !== undefined) return { failure: exit };
  if (/Auto-import skipped|Error parsing line/.test(stderr))
    return { failure: classifyBdText(stderr) };
  const value = jsonOnStdout(stdout);
  const error = errorIn(value);
  if (error !== null) return { failure: classifyBdText(error) };
  if (value !== undefined && exitCode === 0) return { value };
  if (exitCode === 0 && stdout.trim() !== '')
    return { failure: bdFailure('unreadable', `bd printed what is not JSON: ${stdout.trim()}`) };
  if (exitCode === 0 && stderr.trim() === '')
    return { failure: bdFailure('unreadable', 'bd printed nothing') };
  return { failure: withDefaultWords(classifyBdText(errorOn(stderr) || stdout), exitCode) };
};
