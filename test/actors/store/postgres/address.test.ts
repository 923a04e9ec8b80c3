import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import {
  parsePostgresAddress,
  schemaOfProject,
} from '../../../../src/actors/store/postgres/address.ts';
import { temporaryFolder } from '../../../support/temporary.ts';

const read = (url: string, env: Readonly<Record<string, string>> = {}) =>
  parsePostgresAddress(url, { PGPASSFILE: '/nowhere', ...env });

test('an address says host, user, password and database, each with what stands for it when it is absent', () => {
  const { hosts, user, database, schema, shown, password } = read(
    'postgresql://amy%40x:p%2Fw@db.example:6000/tasks',
  );

  expect({ hosts, user, database, schema, shown, password: password() }).toEqual({
    hosts: [{ host: 'db.example', port: 6_000 }],
    user: 'amy@x',
    database: 'tasks',
    schema: 'agent_task_server',
    shown: 'postgres://amy@x@db.example:6000/tasks',
    password: 'p/w',
  });
  expect(read('postgres://', { PGHOST: '/run/pg', PGPORT: '6001', PGUSER: 'bea' })).toMatchObject({
    hosts: [{ host: '/run/pg', port: 6_001 }],
    user: 'bea',
    database: 'bea',
    connectMs: 3_000,
    needsPrimary: true,
  });
});

test('an address names several hosts, IPv6 and a folder of sockets', () => {
  expect(read('postgres://a@one:1,two,[::1]:3/d').hosts).toEqual([
    { host: 'one', port: 1 },
    { host: 'two', port: 5_432 },
    { host: '::1', port: 3 },
  ]);
  expect(read('postgres://a@%2Frun%2Fpg/d?port=7').hosts).toEqual([{ host: '/run/pg', port: 7 }]);
  expect(read('postgres:///d?host=/run/pg&user=a').hosts).toEqual([
    { host: '/run/pg', port: 5_432 },
  ]);
});

test('an address wins over the variables', () => {
  const env = { PGPASSWORD: 'other', PGSSLMODE: 'require', PGCONNECT_TIMEOUT: '9' };
  const given = read('postgres://a:own@h/d?sslmode=disable&connect_timeout=2', env);

  expect([given.password(), given.tls.mode, given.connectMs]).toEqual(['own', 'disable', 2_000]);
  const absent = read('postgres://a@h/d', env);
  expect([absent.password(), absent.tls.mode, absent.connectMs]).toEqual([
    'other',
    'require',
    9_000,
  ]);
});

test.each([
  ['postgres://a@h/d?sslmode=maybe', 'sslmode is none of'],
  ['postgres://a@h/d?pool=4', 'the unknown parameter pool'],
  ['postgres://a@h:0/d', 'a port is not a number'],
  ['postgres://a:%zz@h/d', 'a % is not followed'],
  ['postgres://a:secret/word@h/d', 'a host cannot be read'],
  ['postgres://a@h/d?schema=Robert"', 'schema has other characters'],
  ['postgres://a@h/d?sslmode=verify-full', 'sslmode=verify-full needs sslrootcert'],
  ['postgres://a@h/d?target_session_attrs=standby', 'target_session_attrs is none of'],
])('%s is refused, and the message does not repeat it', (url, problem) => {
  const refused = () => read(url);

  expect(refused).toThrow(problem);
  expect(refused).not.toThrow('secret');
});

test('a project has a schema of its own, unless the address names one', () => {
  const inProject = (url: string, name = 'My-Shop 2', hash = '0a1b2c3d4e5f') =>
    parsePostgresAddress(url, {}, schemaOfProject(name, hash)).schema;

  expect(inProject('postgres://a@h/d')).toBe('agent_my_shop_2_0a1b2c3d4e5f');
  expect(inProject('postgres://a@h/d?schema=other')).toBe('other');
  expect(inProject('postgres://a@h/d', '日本')).toBe('agent____0a1b2c3d4e5f');
  expect(inProject('postgres://a@h/d', '日本')).not.toBe(
    inProject('postgres://a@h/d', '日本', 'ffffffffffff'),
  );
  expect(inProject('postgres://a@h/d', `${'x'.repeat(200)}"; drop schema public; --`)).toMatch(
    /^agent_x{30}_0a1b2c3d4e5f$/,
  );
});

test('a printed address shows no password', () => {
  const address = read('postgres://amy:hidden-word@h/d');

  expect(inspect(address, { depth: 9 }) + JSON.stringify(address)).not.toContain('hidden-word');
});

test('the password file is read as libpq reads it', () => {
  const file = join(temporaryFolder(), 'pgpass');
  writeFileSync(file, '# a comment\nother:*:*:amy:no\nh:5432:d\\:e:amy:p\\:w\\\\d\n*:*:*:*:any\n');
  const passwordFor = (url: string) => read(url, { PGPASSFILE: file }).password();
  chmodSync(file, 0o600);

  expect(passwordFor('postgres://amy@h/d%3Ae')).toBe('p:w\\d');
  expect(passwordFor('postgres://amy@h/d')).toBe('any');
  expect(read('postgres://h/d', { PGPASSFILE: file }).passwordAdvice).toContain('set PGPASSWORD');
  chmodSync(file, 0o644);
  expect(passwordFor('postgres://amy@h/d')).toBeNull();
  expect(read('postgres://h/d', { PGPASSFILE: file }).passwordAdvice).toContain(
    `chmod 600 ${file}`,
  );
});

test('a service of libpq says what the address leaves out, and counts before the variables', () => {
  const file = join(temporaryFolder(), 'services');
  writeFileSync(
    file,
    '[other]\nhost=no\n\n[team]\n# ours\nhost=db.example\nport = 5433\nuser=amy\ndbname=tasks\npassword=a=b c\nsslmode=require\n[last]\nhost=no\n[odd]\noptions=-c x=y\n',
  );
  const env = { PGSERVICEFILE: file, PGUSER: 'joe', PGDATABASE: 'none', PGSERVICE: 'team' };
  const shownOf = (url: string) => {
    const { shown, schema, password, tls } = read(url, env);
    return [shown, schema, password(), tls.mode];
  };

  expect(shownOf('postgres://?schema=s')).toEqual([
    ...['postgres://amy@db.example:5433/tasks', 's', 'a=b c', 'require'],
  ]);
  expect(shownOf('postgres://bob:own@h/d?schema=s&service=team&sslmode=disable')).toEqual([
    ...['postgres://bob@h:5433/d', 's', 'own', 'disable'],
  ]);
  expect(() => shownOf('postgres://h/d?service=absent')).toThrow(
    'the service absent is in none of',
  );
  expect(() => shownOf('postgres://h/d?service=odd')).toThrow(
    'the service odd has the unknown parameter options',
  );
});

test('a file of certificates that is there is used also where only TLS is required', () => {
  const withFile = 'postgres://a@h/d?sslmode=require&sslrootcert=/etc/ca.pem';

  expect(read(withFile).tls.mode).toBe('verify-ca');
  expect(read('postgres://a@h/d?sslmode=require').tls.mode).toBe('require');
  expect(read('postgres://a@h/d').tls.mode).toBe('prefer');
});
