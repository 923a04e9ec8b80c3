import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  ChangeRefusedError,
  StoreAwayError,
  StoreError,
} from '../../../../src/actors/store/port.ts';
import { parsePostgresAddress } from '../../../../src/actors/store/postgres/address.ts';
import { asStoreError, connectPostgres } from '../../../../src/actors/store/postgres/connect.ts';
import {
  createPostgresStore,
  openPostgresDatabase,
  type PostgresDatabase,
} from '../../../../src/actors/store/postgres/database.ts';
import type { Work } from '../../../../src/actors/store/rows/rows.ts';
import { testUnless } from '../../../support/needs.ts';
import { freshAddress, inPostgres, noPostgres, ownServer } from '../../../support/postgres.ts';
import { freePort } from '../../../support/postgres-programs.ts';
import { temporaryFolder } from '../../../support/temporary.ts';

const needsPostgres = testUnless(noPostgres);
const redact = (text: string): string => text;
const note = { taskId: 'bd-a', attempt: 1, type: 'log', at: 1, data: '{}', cause: null };

const open = async (url: string, env = {}): Promise<PostgresDatabase> => {
  const db = await openPostgresDatabase(
    parsePostgresAddress(url, { PGPASSFILE: '/nowhere', ...env }),
  );
  onTestFinished(db.close);
  return db;
};
const failureOf = async (work: Promise<unknown>): Promise<Error> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('it did not fail');
};

needsPostgres.each([
  // Random, so that it cannot be compressed.
  ['key', randomBytes(6_000).toString('hex')],
  ['intent', 'call\u0000_1'],
])('a change that the database refuses is no outage: %s', async (part, value) => {
  const store = createPostgresStore(await open(await freshAddress()), { redact });
  const step = {
    taskId: 'bd-a',
    attempt: 1,
    key: 'act:1:1',
    intent: '{}',
    result: null,
    [part]: value,
  };

  const failure = await failureOf((async () => store.commit({ entries: [], step }))());

  expect(failure).toBeInstanceOf(ChangeRefusedError);
});

const fewConnections = (count: number): string[] => [
  `max_connections=${count}`,
  'superuser_reserved_connections=0',
  'max_wal_senders=0',
];

needsPostgres(
  'nothing is lost when the database is killed: it is away, and goes on when it is back',
  { tags: ['slow'] },
  async () => {
    const server = await ownServer(['fsync=on']);
    const db = await open(server.address);
    const store = createPostgresStore(db, { redact });
    const heard: number[] = [];
    store.subscribe(
      { entries: (all) => void heard.push(...all.map(({ seq }) => seq)), failed: () => {} },
      { after: 0 },
    );
    await store.commit({ entries: [note] });

    server.stop('immediate');
    const away = await failureOf((async () => store.commit({ entries: [note] }))());
    expect(away).toBeInstanceOf(StoreAwayError);
    expect(await failureOf((async () => store.lastSeq())())).toBeInstanceOf(StoreAwayError);
    expect((await store.check()).ok).toBe(false);
    await server.start();

    await store.commit({ entries: [note] });
    expect(await store.lastSeq()).toBe(2);
    expect((await store.check()).ok).toBe(true);
    const other = createPostgresStore(await open(server.address), { redact });
    await other.commit({ entries: [note] });
    await expect.poll(() => heard).toEqual([1, 2, 3]);
  },
);

needsPostgres(
  'a database that is started anew between two commits is not noticed',
  { tags: ['slow'] },
  async () => {
    const server = await ownServer();
    const store = createPostgresStore(await open(server.address), { redact });
    await store.commit({ entries: [note] });
    server.stop('fast');
    await server.start();

    await store.commit({ entries: [note] });

    expect(await store.lastSeq()).toBe(2);
  },
);

needsPostgres(
  'a server that was paused in a transaction stops the others for seconds, not for ever',
  { tags: ['slow'] },
  async () => {
    const url = await freshAddress();
    const db = await open(url);
    const store = createPostgresStore(db, { redact });
    const paused = new pg.Client({ connectionString: url.replace(/\?.*/, '') });
    paused.on('error', () => {});
    await paused.connect();
    onTestFinished(() => paused.end().catch(() => {}));
    await paused.query(`set search_path = ${parsePostgresAddress(url, {}).schema};
    set idle_in_transaction_session_timeout = 5000; begin; select * from journal_end for update`);

    await expect.poll(async () => store.commit({ entries: [note] })).toMatchObject({ stale: [] });
    expect(await store.lastSeq()).toBe(1);
  },
);

needsPostgres(
  'a database that takes a connection and never answers is away in time',
  { tags: ['slow'] },
  async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const address = silent.address();
    const port = typeof address === 'object' ? address?.port : 0;

    const failure = await failureOf(
      open(`postgres://a:w@127.0.0.1:${port}/d?connect_timeout=1&sslmode=disable`),
    );

    expect(failure).toBeInstanceOf(StoreAwayError);
  },
);

needsPostgres(
  'refusals of the database are told in our words, without the password',
  { tags: ['slow'] },
  async () => {
    const server = await ownServer(['password_encryption=scram-sha-256']);
    await inPostgres(server.address, "create role amy login password 'right-word'");
    writeFileSync(
      join(server.folder, 'data', 'pg_hba.conf'),
      'local all all trust\nhost all postgres all trust\nhost all all all scram-sha-256\n',
    );
    await inPostgres(server.address, 'select pg_reload_conf()');
    const as = (user: string, database = 'postgres') =>
      `postgres://${user}@127.0.0.1:${server.port}/${database}`;

    const wrong = await failureOf(open(as('amy:wrong-word')));
    expect(wrong).toBeInstanceOf(StoreError);
    expect(wrong.message).toContain('check the user and the password');
    expect(`${wrong.message}${wrong.stack}`).not.toContain('wrong-word');
    expect((await failureOf(open(as('amy')))).message).toContain('none was given: set PGPASSWORD');
    expect((await failureOf(open(as('postgres', 'none')))).message).toContain(
      'create it, or name another one',
    );
    expect((await failureOf(open(as('amy:right-word')))).message).toContain(
      'the user may not create it',
    );

    await inPostgres(server.address, 'create schema agent_task_server authorization amy');
    const db = await open(as('amy'), { PGPASSWORD: 'right-word' });
    expect((await db.check()).ok).toBe(true);
  },
);

needsPostgres(
  'TLS is used where the server has it, and asked for as sslmode says',
  { tags: ['slow'] },
  async () => {
    const server = await ownServer();
    const plain = (mode: string) => `${server.address}?sslmode=${mode}`;
    expect((await failureOf(open(plain('require')))).message).toContain('has no TLS');
    (await open(plain('prefer'))).close();

    const data = join(server.folder, 'data');
    const [certificate, key] = [join(data, 'server.crt'), join(data, 'server.key')];
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=localhost',
        '-addext',
        'subjectAltName=DNS:localhost',
        '-keyout',
        key,
        '-out',
        certificate,
      ],
      { stdio: 'ignore' },
    );
    chmodSync(key, 0o600);
    if (process.getuid?.() === 0) {
      const id = (flag: string) =>
        Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
      chownSync(key, id('-u'), id('-g'));
    }
    await inPostgres(server.address, 'alter system set ssl = on');
    await inPostgres(server.address, 'select pg_reload_conf()');
    const isEncrypted = async (url: string) => {
      const db = await open(url);
      const row = await db.ask(
        db
          .prepare('select ssl::integer as ssl from pg_stat_ssl where pid = pg_backend_pid()')
          .first(),
      );
      return row?.['ssl'];
    };
    await expect.poll(() => isEncrypted(plain('prefer'))).toBe(1);

    expect(await isEncrypted(plain('disable'))).toBe(0);
    expect(await isEncrypted(plain('require'))).toBe(1);
    const verified = `${plain('verify-full')}&sslrootcert=${certificate}`;
    expect((await failureOf(open(verified))).message).toContain('is not trusted');
    expect(await isEncrypted(verified.replace('127.0.0.1', 'localhost'))).toBe(1);
    expect(await isEncrypted(verified.replace('verify-full', 'verify-ca'))).toBe(1);
    const system = `${plain('verify-full')}&sslrootcert=system`.replace('127.0.0.1', 'localhost');
    expect((await failureOf(open(system))).message).toContain('is not trusted');
  },
);

needsPostgres('the first host that takes writes is used', { tags: ['slow'] }, async () => {
  const server = await ownServer();
  const silent = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const address = silent.address();
  const gone = typeof address === 'object' ? address?.port : 0;
  await new Promise((resolve) => silent.close(resolve));

  const db = await open(`postgres://postgres@127.0.0.1:${gone},127.0.0.1:${server.port}/postgres`);

  expect((await db.check()).ok).toBe(true);
});

test('a connection that breaks while it is written to is away', () => {
  const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' });

  const failure = asStoreError(broken, 'postgres://db/project');

  expect(failure).toBeInstanceOf(StoreAwayError);
  expect(failure.message).toBe('the database postgres://db/project does not answer: write EPIPE');
});

needsPostgres('a database that has no connection left says what to do', async () => {
  const { address } = await ownServer(fewConnections(1));
  const held = new pg.Client({ connectionString: address });
  await held.connect();
  onTestFinished(() => held.end());

  const full = await failureOf(openPostgresDatabase(parsePostgresAddress(address, {})));

  expect(full).toBeInstanceOf(StoreAwayError);
  expect(full.message).toMatch(/too many clients already; raise its max_connections: /);
});

needsPostgres(
  'reads share what connections there are when the database gives no more',
  async () => {
    const { address } = await ownServer(fewConnections(3));
    const db = await open(address);
    const slow = function* (): Work<unknown> {
      return yield* db.prepare('select 1 as n, pg_sleep(0.1)').first();
    };

    const answers = await Promise.all(Array.from({ length: 8 }, () => db.ask(slow())));

    expect(answers).toHaveLength(8);
  },
);

needsPostgres('tables that are gone are named, with what to do', async () => {
  const url = await freshAddress();
  const db = await open(url);
  await inPostgres(url, `drop schema ${new URL(url).searchParams.get('schema')} cascade`);

  const gone = await failureOf((async () => db.ask(db.lastSeq()))());

  expect(gone.message).toMatch(/does not exist; its tables are gone: restore them/);
});

needsPostgres(
  'a table that gets a column, as by a newer server, can be read and written on',
  async () => {
    const url = await freshAddress();
    const db = await open(url);
    const store = createPostgresStore(db, { redact });
    const lease = { charts: { oldest: 1, newest: 1 }, node: 'a', leaseMs: 60_000, name: 'a' };
    await store.join(lease);
    expect(await store.nodes()).toHaveLength(1);
    const inWrite = () => db.write(() => db.prepare('select * from nodes').all());
    expect(await inWrite()).toHaveLength(1);
    await inPostgres(url, 'alter table nodes add column later text');

    expect(await store.nodes()).toHaveLength(1);
    // A transaction that has begun is not repeated by itself.
    expect(await failureOf((async () => inWrite())())).toBeInstanceOf(StoreAwayError);
    expect(await inWrite()).toHaveLength(1);
  },
);

needsPostgres('a pooler that swaps connections is named', async () => {
  const client = new pg.Client({ connectionString: (await freshAddress()).split('?')[0] });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('prepare s0 as select 1');

  const twice = await failureOf(client.query('prepare s0 as select 1'));

  expect(asStoreError(twice, 'postgres://db/project').message).toMatch(
    /"s0" already exists; .*pool_mode=session in pgbouncer$/,
  );
});

const pgbouncer = '/usr/sbin/pgbouncer';
const noPgbouncer = existsSync(pgbouncer)
  ? null
  : 'pgbouncer is not installed (Debian: apt install pgbouncer)';

/** @returns the port of a pgbouncer before the server of an address */
const startPooler = async (url: string, mode: 'session' | 'transaction'): Promise<number> => {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
postgres = host=127.0.0.1 port=${new URL(url).port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
  );
  const isRoot = process.getuid?.() === 0;
  const [program = '', ...words] = [
    ...(isRoot ? ['runuser', '-u', 'postgres', '--'] : []),
    pgbouncer,
  ];
  const pooler = spawn(program, [...words, file], { stdio: 'ignore' });
  onTestFinished(async () => {
    pooler.kill();
    await once(pooler, 'exit');
  });
  await vi.waitFor(() => inPostgres(`postgres://postgres@127.0.0.1:${port}/postgres`, 'select 1'), {
    timeout: 20_000,
  });
  return port;
};

testUnless(noPostgres ?? noPgbouncer)(
  'pgbouncer in session mode does; in transaction mode the second connection is refused',
  { tags: ['slow'] },
  async () => {
    const url = await freshAddress();
    const settings = { readOnly: false, statementMs: 10_000 };
    const connectTwice = async (mode: 'session' | 'transaction') => {
      const address = new URL(url);
      address.port = String(await startPooler(url, mode));
      const connect = () => connectPostgres(parsePostgresAddress(address.href, {}), settings);
      for (const connection of [await connect(), await connect()]) connection.close();
    };

    await connectTwice('session');
    const refused = await failureOf(connectTwice('transaction'));

    expect(refused.message).toMatch(/swaps connections; .*pool_mode=session in pgbouncer$/);
  },
);

/** Passes everything on, until the connections of that moment fall silent. */
const startProxy = async (to: number) => {
  const sockets: Socket[] = [];
  const proxy = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
    sockets.push(near, far);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = proxy.address();
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    silence: () => {
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
  };
};

needsPostgres(
  'connections that are cut without a word are given up, and what was asked is done once on others',
  { tags: ['slow'] },
  async () => {
    const url = await freshAddress();
    const proxy = await startProxy(Number(new URL(url).port));
    const through = new URL(url);
    through.port = String(proxy.port);
    const store = createPostgresStore(await open(through.href), { redact });
    const other = createPostgresStore(await open(url), { redact });
    const heard: number[] = [];
    store.subscribe(
      { entries: (all) => void heard.push(...all.map(({ seq }) => seq)), failed: () => {} },
      { after: 0 },
    );
    const save = (number: number) =>
      store.commit({ entries: [note], commit: { node: 'a', number } });
    await save(1);
    await expect.poll(() => heard).toEqual([1]);

    proxy.silence();
    const began = performance.now();
    await expect.poll(async () => save(2)).toMatchObject({ stale: [] });
    expect(performance.now() - began).toBeLessThan(25_000);

    expect(await other.lastSeq()).toBe(2);
    await other.commit({ entries: [note] });
    await expect.poll(() => heard, { timeout: 90_000 }).toEqual([1, 2, 3]);
  },
);
