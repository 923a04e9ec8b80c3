import type { Database, Statement, Value, Work } from './rows.ts';

const rowsAtOnce = 8;

/** Sends rows of the same columns, several in one statement. `onConflict` is its end. */
export const createRowInsert = (
  db: Pick<Database, 'prepare'>,
  {
    into,
    onConflict = '',
  }: { readonly into: `${string}(${string})`; readonly onConflict?: string },
): ((rows: readonly (readonly Value[])[]) => Work<void>) => {
  const statements = new Map<number, Statement>();
  const row = `(${into
    .split(',')
    .map(() => '?')
    .join(', ')})`;
  const statementOf = (count: number): Statement => {
    const known = statements.get(count);
    if (known !== undefined) return known;
    const rows = Array.from({ length: count }, () => row).join(', ');
    const prepared = db.prepare(`insert into ${into} values ${rows} ${onConflict}`);
    statements.set(count, prepared);
    return prepared;
  };
  return function* (rows) {
    if (rows.length === 1) return void (yield* statementOf(1).send(...(rows[0] ?? [])));
    for (let at = 0; at < rows.length; at += rowsAtOnce) {
      const some = rows.slice(at, at + rowsAtOnce);
      yield* statementOf(some.length).send(...some.flat());
    }
  };
};
