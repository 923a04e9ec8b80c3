import { isJsonObject, parseJson } from '../../machines/json.ts';
import { plainText } from '../process/text-gatherer.ts';

const longestSentence = 500;
/** Longer JSON is not parsed. */
const longestJson = 64 * 1024;
const deepestMessage = 8;
const messageKeys = ['message', 'error', 'detail', 'error_description', 'errors', 'reason'];
const causeKeys = ['code', 'status', 'type'];
const noMessage = 'an error without a message';

const isBracket = (character: string | undefined, kind: string): boolean =>
  character !== undefined && kind.includes(character);

/** The end of the JSON text that begins at `start`, or null when it has none. */
const endOfJson = (text: string, start: number): number | null => {
  let depth = 0;
  let inString = false;
  for (let at = start; at < Math.min(text.length, start + longestJson); at += 1) {
    if (inString) {
      if (text[at] === '\\') at += 1;
      else if (text[at] === '"') inString = false;
      continue;
    }
    if (text[at] === '"') inString = true;
    if (isBracket(text[at], '{[')) depth += 1;
    if (isBracket(text[at], '}]')) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return null;
};

/** The first text under a key of messages, outer keys first. */
const messageIn = (value: unknown, depth: number): string | null => {
  if (depth > deepestMessage) return null;
  if (typeof value === 'string') return value.trim() === '' ? null : withoutJson(value, depth + 1);
  if (Array.isArray(value)) return messageIn(value[0], depth + 1);
  if (!isJsonObject(value)) return null;
  for (const key of messageKeys) {
    const message = messageIn(value[key], depth + 1);
    if (message !== null) return message;
  }
  return null;
};

const causeIn = (value: unknown): string => {
  const causes = isJsonObject(value) ? causeKeys.map((key) => value[key]) : [];
  const cause = causes.find((each) => typeof each === 'string' || typeof each === 'number');
  return cause === undefined ? noMessage : `${noMessage} (${cause})`;
};

const withoutJson = (text: string, depth: number): string => {
  const start = text.search(/\{\s*["}]|\[\s*[{[\]]/);
  if (start === -1 || depth > deepestMessage) return start === -1 ? text : noMessage;
  const end = endOfJson(text, start);
  const value = end === null ? undefined : parseJson(text.slice(start, end));
  const message = value === undefined ? noMessage : (messageIn(value, depth) ?? causeIn(value));
  return `${text.slice(0, start)}${message}${end === null ? '' : text.slice(end)}`;
};

/**
 * The message of an assistant as one line of plain text. Providers put JSON into it, often JSON
 * within JSON. @returns at most 500 characters
 */
export const errorSentence = (message: string): string => {
  const text = plainText(withoutJson(message, 0).slice(0, longestJson))
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\s]+/gu, ' ')
    .trim();
  return text.length <= longestSentence ? text : `${text.slice(0, longestSentence - 1)}…`;
};
