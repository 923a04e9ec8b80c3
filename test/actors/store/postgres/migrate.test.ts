import { expect } from 'vitest';
import { parsePostgresAddress } from '../../../../src/actors/store/postgres/address.ts';
import { openPostgresDatabase } from '../../../../src/actors/store/postgres/database.ts';
import { migrate } from '../../../../src/actors/store/postgres/migrate.ts';
import { migrations, tableNames } from '../../../../src/actors/store/postgres/schema.ts';
import { testUnless } from '../../../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../../../support/postgres.ts';

const needsPostgres = testUnless(noPostgres);
const steps = [
  { version: 1, name: 'first', sql: 'create table one (n integer)' },
  { version: 2, name: 'second', sql: 'alter table one add column m integer' },
];

needsPostgres('servers that start at once bring the tables to their version once', async () => {
  const url = await freshAddress();
  const address = parsePostgresAddress(url, {});

  const done = await Promise.all(
    Array.from({ length: 4 }, () => migrate(address, { known: steps })),
  );

  expect(done.map(({ steps: each }) => each.length).sort()).toEqual([0, 0, 0, 2]);
  expect(await inPostgres(url, 'select version, name from schema_versions order by 1')).toEqual([
    { version: 1, name: 'first' },
    { version: 2, name: 'second' },
  ]);
});

needsPostgres('a dry run says what would be done and does nothing', async () => {
  const url = await freshAddress();
  const address = parsePostgresAddress(url, {});

  const dry = await migrate(address, { known: steps.slice(0, 1), isDry: true });
  expect([dry.from, dry.to, dry.steps.length]).toEqual([0, 1, 1]);
  expect(await inPostgres(url, `select to_regnamespace('${address.schema}') as name`)).toEqual([
    { name: null },
  ]);

  await migrate(address, { known: steps.slice(0, 1) });
  expect((await migrate(address, { known: steps, isDry: true })).steps).toEqual(steps.slice(1));
});

needsPostgres('a step that fails leaves the tables as they were', async () => {
  const url = await freshAddress();
  const address = parsePostgresAddress(url, {});
  const broken = { version: 2, name: 'broken', sql: 'alter table none add column m integer' };
  await migrate(address, { known: steps.slice(0, 1) });

  await expect(
    migrate(address, {
      known: [...steps.slice(0, 1), { ...broken, sql: `create table two (); ${broken.sql}` }],
    }),
  ).rejects.toThrow('"none" does not exist');

  expect(
    await inPostgres(url, "select to_regclass('two') as two, max(version) from schema_versions"),
  ).toEqual([{ two: null, max: 1 }]);
});

needsPostgres('a server that is older than the tables refuses them by name', async () => {
  const url = await freshAddress();
  const address = parsePostgresAddress(url, {});
  (await openPostgresDatabase(address)).close();
  await inPostgres(url, "insert into schema_versions (version, name) values (99, 'later')");

  await expect(openPostgresDatabase(address)).rejects.toThrow(
    `the tables in ${address.shown} are of version 99, and this server knows version ${migrations.at(-1)?.version}`,
  );
});

needsPostgres('the names of the tables are all that there are', async () => {
  const url = await freshAddress();
  const address = parsePostgresAddress(url, {});
  await migrate(address);

  const rows = await inPostgres(
    url,
    `select tablename as name from pg_tables where schemaname = '${address.schema}'`,
  );
  expect(rows.map(({ name }) => name).sort()).toEqual([...tableNames, 'schema_versions'].sort());
});
