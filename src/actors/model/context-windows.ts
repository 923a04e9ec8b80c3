/**
 * Context windows by the beginning of the model's name; the first match counts. As published by
 * their makers.
 */
const windows: readonly (readonly [name: string, tokens: number])[] = [
  ['gpt-5', 272_000],
  ['gpt-4.1', 1_047_576],
  ['gpt-4o', 128_000],
  ['gpt-4-turbo', 128_000],
  ['gpt-3.5-turbo', 16_385],
  ['o1-mini', 128_000],
  ['o1', 200_000],
  ['o3', 200_000],
  ['o4-mini', 200_000],
  ['claude-', 200_000],
  ['gemini-', 1_048_576],
];

/** Null for an unknown model: then the provider's error says when a conversation is too long. */
export const contextWindowOf = (model: string): number | null => {
  // Gateways put the maker before the name: openai/gpt-4o.
  const name = model.slice(model.lastIndexOf('/') + 1);
  return windows.find(([beginning]) => name.startsWith(beginning))?.[1] ?? null;
};
