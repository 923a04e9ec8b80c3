/** JSON without zod, for code that must load fast (ADR 0005) or that reads any shape. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined for a text that is no JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

export const textIn = (value: unknown, key: string): string | null => {
  const found = isJsonObject(value) ? value[key] : undefined;
  return typeof found === 'string' ? found : null;
};

export const textOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Counts brackets outside of strings, before a parser takes seconds over millions of levels. */
export const isNestedDeeper = (json: string, levels: number): boolean => {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (isString && character === '\\') at += 1;
    else if (character === '"') isString = !isString;
    else if (isString) continue;
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (depth > levels) return true;
  }
  return false;
};
