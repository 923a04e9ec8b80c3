/** Replaces exact secret values in a text. `secrets` is called each time. */
export const createRedactor =
  (secrets: () => readonly string[]): ((text: string) => string) =>
  (text) =>
    secrets()
      .filter(({ length }) => length >= 8)
      .reduce((safe, secret) => safe.replaceAll(secret, '[secret]'), text);
