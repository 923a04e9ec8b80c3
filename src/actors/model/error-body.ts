import { isJsonObject, type JsonObject } from '../../machines/json.ts';

const deepest = 4;
const mostErrors = 5;
const longestHead = 10_000;
/** OpenAI and most others; AWS; vLLM; FastAPI; Ollama has a text in `error`. */
const messageKeys = ['message', 'Message', 'error', 'detail', 'msg', 'errors'];

/** The title of a page; empty for other markup. */
const textOf = (text: string): string =>
  /^\s*<[!?a-z]/i.test(text)
    ? (/<title[^<>]*>([^<]*)</i.exec(text.slice(0, longestHead))?.[1] ?? '').trim()
    : text.trim();

/** FastAPI: the path to a refused field. */
const placeIn = ({ loc }: JsonObject): string => {
  const path = Array.isArray(loc)
    ? loc.filter((part) => typeof part === 'string' || typeof part === 'number')
    : [];
  return path.length === 0 ? '' : `${path.join('.')}: `;
};

/** The first text under a key of messages; empty without one. */
const wordsIn = (body: unknown, depth = 0): string => {
  if (typeof body === 'string') return textOf(body);
  if (depth > deepest) return '';
  if (Array.isArray(body)) {
    const each = body.slice(0, mostErrors).map((one) => wordsIn(one, depth + 1));
    return each.filter((words) => words !== '').join('; ');
  }
  if (!isJsonObject(body)) return '';
  const words = messageKeys.map((key) => wordsIn(body[key], depth + 1)).find((one) => one !== '');
  return words === undefined ? '' : `${placeIn(body)}${words}`;
};

/** The error in a body of any shape, with the words of the provider as its `message`. */
export const errorIn = (body: unknown): JsonObject => {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  const outer = isJsonObject(first) ? first : {};
  const inner = isJsonObject(outer['error']) ? outer['error'] : outer;
  return { ...inner, message: wordsIn(body) };
};
