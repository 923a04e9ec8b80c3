import type { ToolCall } from './port.ts';

export interface TextCalls {
  /** What is left of the text. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

const [opening, closing] = ['<tool_call>', '</tool_call>'];
const fence = '```';

/** A call as models print it: `{"name": …, "arguments": {…}}`, or with `parameters`; null when it is none. */
const callIn = (text: string): ToolCall | null => {
  try {
    const { name, arguments: args, parameters = args, ...more } = JSON.parse(text);
    const isCall = typeof name === 'string' && typeof parameters === 'object' && parameters !== null;
    return isCall && Object.keys(more).length === 0
      ? { id: '', tool: name, arguments: JSON.stringify(parameters) }
      : null;
  } catch {
    return null;
  }
};

/** An answer that is one fenced block and holds a call. */
const fenced = (text: string): TextCalls | null => {
  const whole = text.trim();
  if (!whole.startsWith(fence) || !whole.endsWith(fence) || whole.length < 2 * fence.length) return null;
  const inside = whole.slice(fence.length, -fence.length);
  const call = callIn(inside.slice(Math.max(0, inside.indexOf('{'))));
  return call === null ? null : { text: '', calls: [call] };
};

/** Calls that a model printed between `<tool_call>` tags, or as one fenced block; what is no call stays text. */
export const textCallsIn = (text: string): TextCalls => {
  const block = fenced(text);
  if (block !== null) return block;
  const calls: ToolCall[] = [];
  let rest = '';
  let at = 0;
  for (let from = text.indexOf(opening); from >= 0; from = text.indexOf(opening, at)) {
    const end = text.indexOf(closing, from);
    const until = end < 0 ? text.length : end;
    const call = callIn(text.slice(from + opening.length, until));
    const after = Math.min(text.length, until + closing.length);
    rest += call === null ? text.slice(at, after) : text.slice(at, from);
    if (call !== null) calls.push(call);
    at = after;
  }
  return { text: `${rest}${text.slice(at)}`.trim(), calls };
};
