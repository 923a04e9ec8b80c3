import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { mcpSecrets } from '../../src/cli/config/mcp-servers.ts';
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
  ['neither program nor address', {}, 'mcp.servers.x: needs one of command and url'],
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

test('what the variables of servers hold is a secret', () => {
  const { mcp } = load({ mcp: { servers } }).config;

  expect(mcpSecrets(mcp, { FAR_TOKEN: 'f-1', NEAR: 'n-1' })).toEqual(['f-1']);
});
