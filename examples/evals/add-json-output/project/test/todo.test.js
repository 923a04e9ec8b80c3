import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const todo = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..', 'src', 'todo.js');

test('what was added is listed', () => {
  const env = { ...process.env, TODO_FILE: join(mkdtempSync(join(tmpdir(), 'todo-')), 'todo.txt') };
  const run = (...args) => execFileSync(process.execPath, [todo, ...args], { env, encoding: 'utf8' });

  run('add', 'buy', 'milk');
  run('add', 'read');
  run('done', '1');

  assert.equal(run('list'), '1 [x] buy milk\n2 [ ] read\n');
});
