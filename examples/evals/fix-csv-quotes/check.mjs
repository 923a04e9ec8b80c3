import assert from 'node:assert/strict';
import { check, load, ownTests } from '../check.mjs';

const { parseCsv } = await load('src/csv.js');
const same = (text, rows) => () => assert.deepEqual(parseCsv(text), rows);

await check({
  'a comma in quotes': same('a,"b,c",d\n', [['a', 'b,c', 'd']]),
  'a line break in quotes': same('"one\ntwo",b\nc,d', [['one\ntwo', 'b'], ['c', 'd']]),
  'a doubled quote': same('"say ""hi""",b', [['say "hi"', 'b']]),
  'CRLF ends a row': same('a,b\r\nc,d\r\n', [['a', 'b'], ['c', 'd']]),
  'CRLF within quotes stays': same('"a\r\nb"\r\n', [['a\r\nb']]),
  'empty fields': same('a,,\n,"",c', [['a', '', ''], ['', '', 'c']]),
  'spaces belong to the field': same('a , b\n', [['a ', ' b']]),
  'an empty last field is not lost': same('a,b\n1,', [['a', 'b'], ['1', '']]),
  'an open quote names its line': () => assert.throws(() => parseCsv('a,b\nc,"d\ne'), (error) => error instanceof Error && /\b2\b/.test(error.message)),
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
