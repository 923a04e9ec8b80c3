import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { mcpSecrets, projectServers } from '../../src/cli/config/mcp-servers.ts';
import { resolveSettings } from '../../src/cli/config/settings.ts';
import { temporaryFolder } from '../support/temporary.ts';

const token = `Bearer \${FAR_TOKEN}`;
const servers = {
  near: { command: 'near-mcp', args: ['stdio'], roles: ['tester'] },
  far: { type: 'http', url: 'https://mcp.example/mcp', headers: { Authorization: token } },
};

const load = (config: object) => {
  const file = join(temporaryFolder(), 'config.json');
  writeFileSync(file, JSON.stringify(config));
  return loadConfig({ config: file }, {});
};
const settingsOf = (config: object, root = temporaryFolder()) =>
  resolveSettings(load(config), root).settings;

test('a server is for the roles that its entry names, or for all', () => {
  const { roles, mcpServers } = settingsOf({ mcp: { servers } });

  expect(roles.tester.mcp).toEqual(['near', 'far']);
  expect(roles.engineer.mcp).toEqual(['far']);
  expect(mcpServers).toEqual([
    {
      name: 'near',
      place: {
        kind: 'stdio',
        argv: ['near-mcp', 'stdio'],
        env: {},
        sandboxed: true,
        network: false,
        mayWrite: false,
        readPaths: [],
      },
      tools: null,
      startMs: 20_000,
      callMs: 120_000,
    },
    {
      name: 'far',
      place: { kind: 'http', url: 'https://mcp.example/mcp', headers: { Authorization: token } },
      tools: null,
      startMs: 20_000,
      callMs: 120_000,
    },
  ]);
});

test('nothing of a project names a server, and its role files only take servers away', () => {
  const root = temporaryFolder();
  mkdirSync(join(root, '.agent', 'roles'), { recursive: true });
  const planted = JSON.stringify({ mcpServers: { planted: { command: 'evil' } } });
  for (const name of ['.mcp.json', 'mcp.json', 'agent-server.json', 'config.json'])
    writeFileSync(join(root, name), planted);
  writeFileSync(join(root, '.agent', 'roles', 'tester.yml'), 'tools: [finish, mcp__far]');
  writeFileSync(join(root, '.agent', 'roles', 'engineer.yml'), 'tools: [finish, mcp__near]');

  const { settings, projectRoles } = resolveSettings(load({ mcp: { servers } }), root);

  expect(settings.mcpServers.map(({ name }) => name)).toEqual(['near', 'far']);
  expect(settings.roles.tester.mcp).toEqual(['far']);
  expect(settings.roles.engineer.mcp).toEqual(['far']);
  expect(projectRoles.map(({ role, ignored }) => [role, ignored])).toEqual([
    ['engineer', expect.stringContaining('tools: adds mcp__near to what your configuration')],
    ['tester', null],
  ]);
});

test.each<[string, object, string]>([
  ['neither program nor address', {}, 'mcp.servers.x: needs one of command and url, or project'],
  ['both', { command: 'a', url: 'https://b.example' }, 'needs one of command and url'],
  ['another type', { type: 'http', command: 'a' }, 'mcp.servers.x.type: must be stdio with'],
  ['http to another machine', { url: 'http://b.example' }, 'mcp.servers.x.url: must be https'],
  ['a folder by half', { command: 'a', read_paths: ['b'] }, 'must be an absolute path'],
])('a server with %s is refused', (_, server, problem) => {
  expect(() => load({ mcp: { servers: { x: server } } })).toThrow(problem);
});

test.each(['a__b', '-a', 'a b', 'a'.repeat(33), 'a\n'])('a server cannot be called %j', (name) => {
  expect(() => load({ mcp: { servers: { [name]: { command: 'a' } } } })).toThrow('mcp.servers');
});

test('the values of the variables of servers are secrets', () => {
  const { mcp } = load({ mcp: { servers } }).config;

  expect(mcpSecrets(mcp, { FAR_TOKEN: 'f-1', NEAR: 'n-1' })).toEqual(['f-1']);
});

test('a server of the project is used as the user allowed it by name, and no other way', () => {
  const root = temporaryFolder();
  const offer = (entry: object) =>
    writeFileSync(
      join(root, '.mcp.json'),
      JSON.stringify({ mcpServers: { db: entry, other: { command: 'other' } } }),
    );
  offer({ command: 'db-mcp', args: ['--read'], env: { MODE: 'x', STOLEN: `\${GITHUB_TOKEN}` } });
  const [{ fingerprint = '' } = {}] = projectServers(root);
  const env = { URL: `\${DB_URL}` };
  const allowed = (project: string) =>
    settingsOf({ mcp: { servers: { db: { project, env } } } }, root).mcpServers;

  const [used, ...others] = allowed(fingerprint);
  const [mistaken] = allowed('0123456789ab');
  offer({ command: 'db-mcp', args: ['--write'], env: { MODE: 'x', STOLEN: `\${GITHUB_TOKEN}` } });
  const [changed] = allowed(fingerprint);

  expect(others).toEqual([]);
  expect(used?.place).toMatchObject({
    argv: ['db-mcp', '--read'],
    sandboxed: true,
    network: false,
  });
  expect(used?.place.kind === 'stdio' && used.place.env).toEqual({ MODE: 'x', ...env });
  expect(mistaken?.place).toMatchObject({ kind: 'refused' });
  expect(changed?.place).toMatchObject({ kind: 'refused' });
});

test('a hostile .mcp.json offers nothing', () => {
  const root = temporaryFolder();
  for (const text of [
    '{"mcpServers": {"a": {"command": 7}, "b": {"url": "http://evil.example"}, "c": null}}',
    `{"mcpServers": ${'['.repeat(60_000)}`,
    'x'.repeat(100_000),
    'null',
  ]) {
    writeFileSync(join(root, '.mcp.json'), text);
    expect(projectServers(root)).toEqual([]);
  }
});
