import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readNote, writeNote } from '../src/notes.js';
import { report } from '../src/report.js';

test('notes are kept and counted', (_, done) => {
  const folder = join(mkdtempSync(join(tmpdir(), 'notes-')), 'new');
  writeNote(folder, 'b', 'two words', (error, written) => {
    assert.deepEqual([error, written], [null, true]);
    readNote(folder, 'nothing', (problem, text) => {
      assert.deepEqual([problem, text], [null, null]);
      report(folder, (failed, lines) => {
        assert.deepEqual([failed, lines], [null, 'b: 2']);
        done();
      });
    });
  });
});
