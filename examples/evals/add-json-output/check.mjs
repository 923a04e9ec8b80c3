import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, node, ownTests, read } from '../check.mjs';

const file = join(mkdtempSync(join(tmpdir(), 'todo-')), 'todo.txt');
process.env.TODO_FILE = file;
const { spawnSync } = await import('node:child_process');
const todo = (...args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['src/todo.js', ...args], {
    cwd: process.argv[2],
    env: { ...process.env, TODO_FILE: file },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
};
writeFileSync(file, 'x buy milk\n- say "hi"\n- read\n');

await check({
  'text as before': () => assert.equal(todo('list').stdout, '1 [x] buy milk\n2 [ ] say "hi"\n3 [ ] read\n'),
  '--json': () =>
    assert.deepEqual(JSON.parse(todo('list', '--json').stdout), [
      { id: 1, text: 'buy milk', done: true },
      { id: 2, text: 'say "hi"', done: false },
      { id: 3, text: 'read', done: false },
    ]),
  '--open keeps the ids': () => assert.equal(todo('list', '--open').stdout, '2 [ ] say "hi"\n3 [ ] read\n'),
  'both, in either order': () => {
    assert.deepEqual(JSON.parse(todo('list', '--open', '--json').stdout).map(({ id }) => id), [2, 3]);
    assert.deepEqual(JSON.parse(todo('list', '--json', '--open').stdout).map(({ id }) => id), [2, 3]);
  },
  'an unknown flag': () => {
    const { status, stdout, stderr } = todo('list', '--nonsense');
    assert.deepEqual({ status, stdout, stderr }, { status: 2, stdout: '', stderr: 'unknown flag: --nonsense\n' });
  },
  'an unknown flag of another command changes nothing': () => {
    const { status, stderr } = todo('add', '--loud', 'x');
    assert.deepEqual({ status, stderr }, { status: 2, stderr: 'unknown flag: --loud\n' });
    assert.equal(JSON.parse(todo('list', '--json').stdout).length, 3);
  },
  'an empty list as JSON': () => {
    writeFileSync(file, '');
    assert.deepEqual(JSON.parse(todo('list', '--json').stdout), []);
  },
  'the README names both flags': () => assert.ok(read('README.md').includes('--json') && read('README.md').includes('--open')),
  'the tests pass, and there are more': () => {
    const { pass, count } = ownTests();
    assert.ok(pass && count > 1, `${count} tests, ${pass ? 'passed' : 'failed'}`);
  },
});
