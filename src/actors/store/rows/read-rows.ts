import { type Database, type Row, together, type Value, type Work } from './rows.ts';

const keysAtOnce = 8;

/**
 * Reads the rows that have one of some keys, up to eight in a statement. @param select ends with the
 * name of the column
 */
export const createRowRead = (
  db: Pick<Database, 'prepare'>,
  select: string,
): ((keys: readonly Value[]) => Work<readonly Row[]>) => {
  const one = db.prepare(`${select} = ?`);
  const many = db.prepare(`${select} in (${Array.from({ length: keysAtOnce }, () => '?')})`);
  return function* (keys) {
    const works = [];
    for (let from = 0; from < keys.length; from += keysAtOnce) {
      const some = keys.slice(from, from + keysAtOnce);
      const rest = Array.from({ length: keysAtOnce - some.length }, () => null);
      works.push(some.length === 1 ? one.all(...some) : many.all(...some, ...rest));
    }
    return (yield* together(works)).flat();
  };
};
