import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { migrations } from '../../src/actors/store/postgres/schema.ts';
import { openProject, plain } from '../support/cli.ts';
import { testUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';

test('agent store carries the tasks of a project to another store', async () => {
  const { agent, configFile, stateDir } = openProject();
  const file = join(stateDir, '..', 'basket.store');
  await agent('create', 'One');
  await agent('create', 'Two');

  const exported = await agent('store', 'export', file);
  expect(exported).toMatchObject({
    code: 0,
    out: expect.stringContaining(': 2 tasks, 0 journal entries of'),
  });
  expect((await agent('store', 'export', file)).err).toContain('exists; name another file');
  expect((await agent('store', 'import', file)).err).toContain(
    'the store is not empty: it has 2 tasks',
  );
  expect((await agent('store', 'import')).err).toContain(
    'name the file: agent store import <file>',
  );

  const other = join(stateDir, '..', 'other.db');
  writeFileSync(configFile, JSON.stringify({ ...plain, store: { url: other } }));
  const imported = await agent('store', 'import', file, '--json');

  expect(JSON.parse(imported.out)).toMatchObject({
    action: 'import',
    store: other,
    tables: { tasks: { rows: 2 } },
  });
  expect((await agent('list', '--all')).out).toMatch(/One[\s\S]*Two|Two[\s\S]*One/);
  expect(readFileSync(file, 'utf8')).toMatch(/^\{"agent_store":1,/);
});

test('an export of which the disk takes a part leaves no file and does not say that it wrote one', async () => {
  const { agent, shell, stateDir } = openProject();
  const file = join(stateDir, '..', 'basket.store');
  const long = 'x'.repeat(60_000);
  for (const title of ['One', 'Two', 'Three']) await agent('create', long, '--title', title);

  const ended = await shell(`ulimit -f 300; $AGENT store export ${file}`);

  expect(ended.err).toContain(`${file} cannot be written: EFBIG`);
  expect([ended.code, ended.out]).toEqual([6, '']);
  expect(existsSync(file)).toBe(false);
});

testUnless(noPostgres)(
  'agent store migrate shows what it would do, and does it',
  { tags: ['slow'] },
  async () => {
    const { agent, agentWith } = openProject({ store: { url: 'DATABASE_URL' } });
    const url = await freshAddress();
    const migrate = (...words: string[]) =>
      agentWith({ DATABASE_URL: url }, 'store', 'migrate', ...words);

    const last = migrations.at(-1)?.version;
    const shown = (await migrate('--dry-run')).out;
    expect(shown).toContain('create table journal');
    expect(shown).toContain(`would bring the tables from version 0 to ${last}`);
    expect((await migrate()).out).toContain(`brought the tables from version 0 to ${last}`);
    expect((await migrate()).out).toContain('nothing is to do');
    expect(await inPostgres(url, 'select count(*)::int as tasks from tasks')).toEqual([
      { tasks: 0 },
    ]);
    expect((await agent('store', 'migrate')).err).toContain('DATABASE_URL, which is not set');
  },
);

test('an SQLite file that store.url names is for one project; another one is refused', async () => {
  const one = openProject();
  const file = join(one.stateDir, '..', 'shared.db');
  const config = JSON.stringify({ ...plain, store: { url: file } });
  const two = openProject();
  writeFileSync(one.configFile, config);
  writeFileSync(two.configFile, config);
  await one.agent('create', 'Of one');

  const listed = await two.agent('list');
  const started = await two.agent('create', 'Of two');

  for (const { code, out, err } of [listed, started]) {
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(`keeps the tasks of ${one.root}`);
  }
  expect((await one.agent('list')).out).toContain('Of one');
});
