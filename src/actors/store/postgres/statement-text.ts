/** A text in quotes, a place for a value, or the start of an expression of JSON. */
const tokens = /'(?:[^']|'')*'|\?(\d+)?|\bjson\(/g;

/** A statement as PostgreSQL writes it. `plain_json` is a function of our schema. */
export const postgresText = (sql: string): string => {
  let places = 0;
  return sql.replaceAll(tokens, (token, number: string | undefined) => {
    if (token === 'json(') return 'plain_json(';
    if (!token.startsWith('?')) return token;
    places += 1;
    return `$${number ?? places}`;
  });
};
