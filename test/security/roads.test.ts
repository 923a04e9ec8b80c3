import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

interface Road {
  readonly id: string;
  readonly road: string;
  readonly tests: readonly {
    readonly file: string;
    readonly test: string;
    readonly case?: string;
  }[];
}

const read = (file: string): string => readFileSync(join(import.meta.dirname, '..', file), 'utf8');
const roads: readonly Road[] = JSON.parse(read('security/roads.json'));

test('each item of the acceptance list from A1 to A28 is a road, and each road has one name', () => {
  const ids = roads.map(({ id }) => id);

  expect(ids.filter((id) => /^A\d+$/.test(id))).toEqual(
    Array.from({ length: 28 }, (_, index) => `A${index + 1}`),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

test('each road names existing tests', () => {
  expect(roads.filter(({ tests }) => tests.length === 0)).toEqual([]);
  const missing = roads.flatMap(({ tests }) =>
    tests.flatMap(({ file, test: title, case: value }) => {
      const source = read(file).replaceAll("\\'", "'");
      return [title, ...(value === undefined ? [] : [value])].filter(
        (text) => !source.includes(text),
      );
    }),
  );
  expect(missing).toEqual([]);
});
