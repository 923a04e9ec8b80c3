import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readNote, writeNote } from '../src/notes.js';
import { report } from '../src/report.js';

test('notes are kept and counted', async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'notes-')), 'new');

  assert.equal(await writeNote(folder, 'b', 'two words'), true);
  assert.equal(await writeNote(folder, 'b', 'two words'), false);

  assert.equal(await readNote(folder, 'nothing'), null);
  assert.equal(await report(folder), 'b: 2');
});
