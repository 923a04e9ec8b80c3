const shortestSecret = 8;
/** A text in a journal entry may be JSON that holds JSON: a tool call that writes a JSON file. */
const jsonLevelsAtMost = 3;

/** The secret as JSON strings hold it, deepest first, and as it is. */
const formsOfSecret = (secret: string, levels = jsonLevelsAtMost): readonly string[] => {
  const escaped = JSON.stringify(secret).slice(1, -1);
  return levels === 0 || escaped === secret
    ? [secret]
    : [...formsOfSecret(escaped, levels - 1), secret];
};

/** Replaces exact secret values, also where JSON escapes them. `secrets` is called each time. */
export const createRedactor =
  (secrets: () => readonly string[]): ((text: string) => string) =>
  (text) =>
    secrets()
      // Of a key with a line end, what is sent has none.
      .map((secret) => secret.trim())
      .filter(({ length }) => length >= shortestSecret)
      .flatMap((secret) => formsOfSecret(secret))
      .reduce((safe, secret) => safe.replaceAll(secret, '[secret]'), text);
