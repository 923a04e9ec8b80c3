/** Tasks in one transaction of an import or export: a few milliseconds. */
const chunk = 200;

export const chunksOf = <Element>(
  all: readonly Element[],
  size = chunk,
): readonly (readonly Element[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, n) =>
    all.slice(n * size, (n + 1) * size),
  );
