import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** In a process of its own: libsql ends the process that asks a closed database. */
const program = `
import { openDatabase } from ${JSON.stringify(join(import.meta.dirname, '../../../build/actors/store/database.js'))};
const db = openDatabase({ file: ':memory:' });
const insert = db.write(() => db.prepare('create table t (x)').run()) && db.prepare('insert into t values (1)');
const probe = db.prepare('select 1');
db.close();
const said = (work) => { try { work(); return 'nothing'; } catch (error) { return error.name + ': ' + error.message; } };
console.log(JSON.stringify([
  said(() => db.write(() => insert.run())),
  said(() => db.read(() => probe.all())),
  said(() => db.ask(insert.run())),
  db.isHeld(),
  db.check().ok,
]));
`;

test('work that comes after the end of the database is refused, and ends no process', () => {
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 20_000,
  });

  const closed = 'StoreError: the database is closed';
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toEqual([closed, closed, closed, false, false]);
});
