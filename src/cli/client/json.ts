/** JSON of our own server, for code that must load fast (ADR 0005). Other code uses zod. */
export type Json = Readonly<Record<string, unknown>>;

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const textIn = (value: unknown, key: string): string | null => {
  const found = isJson(value) ? value[key] : undefined;
  return typeof found === 'string' ? found : null;
};
