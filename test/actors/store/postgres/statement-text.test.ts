import { expect, test } from 'vitest';
import { postgresText } from '../../../../src/actors/store/postgres/database.ts';

test.each([
  ['select ? , ?', 'select $1 , $2'],
  ['update a set b = ?2 where c = ?1', 'update a set b = $2 where c = $1'],
  ["select '?', 'it''s ?1' where a = ?", "select '?', 'it''s ?1' where a = $1"],
  ["select json(a) ->> 'b'", "select plain_json(a) ->> 'b'"],
])('%s', (sql, text) => {
  expect(postgresText(sql)).toBe(text);
});
