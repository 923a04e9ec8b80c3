import { isJsonObject, type JsonObject, parseJson } from '../../machines/json.ts';
import type { ToolCall } from './port.ts';

export interface TextCalls {
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

const [opening, closing] = ['<tool_call>', '</tool_call>'];
const fence = '```';
const maxEndsTried = 8;
/** What follows so many tags stays text. */
const maxBlocks = 100;

const objectIn = (value: unknown): JsonObject | null => {
  const parsed = typeof value === 'string' ? parseJson(value) : value;
  return isJsonObject(parsed) ? parsed : null;
};

/** Parses `{"name": …, "arguments": {…}}`, or `parameters` in place of `arguments`; else null. */
const callIn = (text: string): ToolCall | null => {
  const { name, arguments: args, parameters = args, ...more } = objectIn(text) ?? {};
  const given = objectIn(parameters);
  return typeof name === 'string' && given !== null && Object.keys(more).length === 0
    ? { id: '', tool: name, arguments: JSON.stringify(given) }
    : null;
};

/** One call, or one on each line; empty when anything else is there. */
const callsInBlock = (text: string): readonly ToolCall[] => {
  const whole = callIn(text);
  if (whole !== null) return [whole];
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const calls = lines.map(callIn).filter((call) => call !== null);
  return calls.length === lines.length ? calls : [];
};

const callsInFence = (text: string): TextCalls | null => {
  const whole = text.trim();
  if (!whole.startsWith(fence) || !whole.endsWith(fence) || whole.length < 2 * fence.length)
    return null;
  const inside = whole.slice(fence.length, -fence.length);
  const call = callIn(inside.slice(Math.max(0, inside.indexOf('{'))));
  return call === null ? null : { text: '', calls: [call] };
};

/**
 * Parses from a start tag to its end tag. An argument may hold an end tag, so later ones are tried,
 * too.
 */
const blockAt = (
  text: string,
  from: number,
): { readonly calls: readonly ToolCall[]; readonly end: number } => {
  const begin = from + opening.length;
  let end = text.indexOf(closing, begin);
  const first = end < 0 ? text.length : end + closing.length;
  for (let tries = 0; end >= 0 && tries < maxEndsTried; tries += 1) {
    const calls = callsInBlock(text.slice(begin, end));
    if (calls.length > 0) return { calls, end: end + closing.length };
    end = text.indexOf(closing, end + closing.length);
  }
  const calls = first === text.length ? callsInBlock(text.slice(begin)) : [];
  return { calls, end: first };
};

/** Finds calls between `<tool_call>` tags or in one fenced block; everything else stays text. */
export const textCallsIn = (text: string): TextCalls => {
  const block = callsInFence(text);
  if (block !== null) return block;
  const calls: ToolCall[] = [];
  let rest = '';
  let at = 0;
  let from = text.indexOf(opening);
  for (let blocks = 0; from >= 0 && blocks < maxBlocks; blocks += 1) {
    const found = blockAt(text, from);
    rest += text.slice(at, found.calls.length === 0 ? found.end : from);
    calls.push(...found.calls);
    at = found.end;
    from = text.indexOf(opening, at);
  }
  return { text: `${rest}${text.slice(at)}`.trim(), calls };
};
