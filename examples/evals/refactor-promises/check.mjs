import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, load, ownTests, read } from '../check.mjs';

const folder = () => mkdtempSync(join(tmpdir(), 'notes-'));
const source = `${read('src/notes.js')}\n${read('src/report.js')}`;
const { readNote, writeNote, allNotes } = await load('src/notes.js');
const { report } = await load('src/report.js');

/**
 * The answer of a function that must be one of promises: one of callbacks fails here, and does not
 * hang.
 */
const answer = async (call) => {
  const result = call();
  assert.equal(typeof result?.then, 'function', 'no promise');
  return result;
};

await check({
  'only promises of files': () => {
    assert.doesNotMatch(source, /from ['"](node:)?fs['"]|Sync\(|promisify|new Promise/);
    assert.match(source, /fs\/promises/);
  },
  'no callback is taken': () => assert.deepEqual([readNote.length, writeNote.length, allNotes.length, report.length], [2, 3, 1, 1]),
  'a note that does not exist': async () => assert.equal(await answer(() => readNote(folder(), 'a')), null),
  'other errors reject': async () => {
    const at = folder();
    mkdirSync(join(at, 'a.txt'));
    await assert.rejects(answer(() => readNote(at, 'a')), { code: 'EISDIR' });
    await assert.rejects(answer(() => allNotes(join(at, 'none'))), { code: 'ENOENT' });
  },
  'the same text is not written again': async () => {
    const at = join(folder(), 'new');
    assert.equal(await answer(() => writeNote(at, 'a', 'x')), true);
    const before = statSync(join(at, 'a.txt'), { bigint: true }).mtimeNs;
    assert.equal(await answer(() => writeNote(at, 'a', 'x')), false);
    assert.equal(statSync(join(at, 'a.txt'), { bigint: true }).mtimeNs, before);
    assert.equal(await answer(() => writeNote(at, 'a', 'y')), true);
  },
  'all notes by name, and only notes': async () => {
    const at = folder();
    for (const name of ['b.txt', 'a.txt', 'c.md']) writeFileSync(join(at, name), `text of ${name}`);
    assert.deepEqual(await answer(() => allNotes(at)), [
      { name: 'a', text: 'text of a.txt' },
      { name: 'b', text: 'text of b.txt' },
    ]);
  },
  'they are read side by side': () => assert.match(source, /Promise\.all/),
  'the report follows': async () => {
    const at = folder();
    writeFileSync(join(at, 'a.txt'), 'one two\nthree');
    assert.equal(await answer(() => report(at)), 'a: 3');
  },
  'the tests pass': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 0, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
