import { expect, onTestFinished } from 'vitest';
import { parsePostgresAddress } from '../../../../src/actors/store/postgres/address.ts';
import { openPostgresDatabase } from '../../../../src/actors/store/postgres/database.ts';
import type { Work } from '../../../../src/actors/store/rows/rows.ts';
import { testUnless } from '../../../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../../../support/postgres.ts';

const needsPostgres = testUnless(noPostgres);

/** A database as a role with these defaults opens it. */
const openAs = async (defaults: readonly string[]) => {
  const administrator = await freshAddress();
  const url = new URL(administrator);
  const role = `role_${url.searchParams.get('schema')}`;
  await inPostgres(
    administrator,
    `create role ${role} login; create schema ${url.searchParams.get('schema')} authorization ${role};
    ${defaults.map((each) => `alter role ${role} set ${each};`).join('\n')}`,
  );
  onTestFinished(async () => {
    await inPostgres(administrator, `drop owned by ${role} cascade; drop role ${role}`);
  });
  url.username = role;
  const open = async () => {
    const database = await openPostgresDatabase(parsePostgresAddress(url.href, {}));
    onTestFinished(() => database.close());
    return database;
  };
  return { administrator, role, open };
};

needsPostgres('a text with a backslash is read whatever the role says of strings', async () => {
  const { open } = await openAs(['standard_conforming_strings = off']);
  const database = await open();

  const row = await database.ask(
    (function* (): Work<unknown> {
      return yield* database
        .prepare("select plain_json(?) ->> 'a' as a")
        .first('{"a":"b\\\\c\\u0000"}');
    })(),
  );

  expect(row).toEqual({ a: 'b//c/u0000' });
});

needsPostgres('numbers are whole whatever the role says of their digits', async () => {
  const { open } = await openAs(['extra_float_digits = -10']);
  const database = await open();

  const row = await database.ask(
    (function* (): Work<unknown> {
      return yield* database.prepare('select 0.123456789012::double precision as n').first();
    })(),
  );

  expect(row).toEqual({ n: 0.123456789012 });
});

needsPostgres('servers that write at once wait for each other in every isolation', async () => {
  const { open } = await openAs(["default_transaction_isolation = 'serializable'"]);
  const databases = await Promise.all([open(), open(), open()]);

  const writes = databases.flatMap((database) =>
    Array.from({ length: 20 }, () =>
      database.write(function* () {
        yield* database.added((yield* database.lastSeq()) + 1);
      }),
    ),
  );

  await Promise.all(writes);
  expect(await databases[0]?.ask(databases[0].lastSeq())).toBe(60);
});

needsPostgres('a connection that is idle stays', async () => {
  const { administrator, role, open } = await openAs(["idle_session_timeout = '50ms'"]);
  const database = await open();
  const held = () =>
    inPostgres(
      administrator,
      `select pid from pg_stat_activity where usename = '${role}' order by 1`,
    );
  await database.check();
  const before = await held();
  await new Promise((resolve) => setTimeout(resolve, 500));

  expect(before.length).toBeGreaterThan(0);
  expect(await held()).toEqual(before);
});
