import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const todo = fileURLToPath(new URL('../src/todo.js', import.meta.url));
const env = { ...process.env, TODO_FILE: join(mkdtempSync(join(tmpdir(), 'todo-')), 'todo.txt') };
const run = (...args) => spawnSync(process.execPath, [todo, ...args], { env, encoding: 'utf8' });
writeFileSync(env.TODO_FILE, 'x milk\n- read\n');

test('--open and --json', () => {
  assert.equal(run('list', '--open').stdout, '2 [ ] read\n');
  assert.deepEqual(JSON.parse(run('list', '--open', '--json').stdout), [{ id: 2, text: 'read', done: false }]);
});

test('an unknown flag', () => {
  assert.equal(run('done', '--all').status, 2);
});
