import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/cli/config/config.ts';
import { resolveSettings } from '../../../src/cli/config/settings.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const confined = { sandbox: { mode: 'auto' } };

/** The settings that result from a configuration and the project's role files. */
const resolve = (
  files: Readonly<Record<string, string | Buffer>>,
  config: object = confined,
  root = temporaryFolder(),
) => {
  const configFile = join(temporaryFolder(), 'config.json');
  writeFileSync(configFile, JSON.stringify(config));
  mkdirSync(join(root, '.agent', 'roles'), { recursive: true });
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(root, '.agent', 'roles', name), text);
  return resolveSettings(loadConfig({ config: configFile }, {}), root);
};

const rolesWithout = (config: object = confined) => resolve({}, config).settings.roles;

test('a project removes tools, lowers limits, and adds approvals, checks, criteria and notes', () => {
  const file = `
name: tester
tools: [finish, read, read]
limits: { timeout_seconds: 60, max_turns: 5, max_tokens_total: 100 }
require_approval: [read]
verify: [npm test]
network: false
success_criteria: [the changelog has a line]
notes: |
  Use the fake clock.
`;
  const config = {
    ...confined,
    roles: { tester: { verify: ['npm run lint'], model: 'small', network: true } },
  };

  const { settings, projectRoles } = resolve({ 'tester.yml': file }, config);

  expect(settings.roles.tester).toEqual({
    ...rolesWithout(config).tester,
    tools: ['read', 'finish'],
    timeoutMs: 60_000,
    maxTurns: 5,
    maxTokensTotal: 100,
    approvals: ['read'],
    verify: ['npm run lint', 'npm test'],
    isNetworkRevoked: true,
    projectNotes:
      'Use the fake clock.\n\nBefore finish, this must be true as well:\n\n- the changelog has a line',
  });
  expect(settings.roles.engineer).toEqual(rolesWithout(config).engineer);
  expect(projectRoles).toEqual([
    {
      role: 'tester',
      path: '.agent/roles/tester.yml',
      narrowed: [
        'without write, edit, bash, grep, find, ask',
        'timeout_seconds 60 (was 600)',
        'max_turns 5 (was 50)',
        'max_tokens_total 100 (was 1000000)',
        'approval for read',
        'verify "npm test"',
        'no network',
        '1 more success criterion',
        'notes',
      ],
      ignored: null,
    },
  ]);
});

test.each<[string, string, object, string]>([
  [
    'a tool',
    'tools: [read, bash, finish]',
    { roles: { tester: { tools: ['read', 'finish'] } } },
    'tools: adds bash to what your configuration allows (read, finish)',
  ],
  [
    'time',
    'limits: { timeout_seconds: 601 }',
    {},
    'limits.timeout_seconds: 601 is above the 600 that your',
  ],
  ['turns', 'limits: { max_turns: 51 }', {}, 'limits.max_turns: 51 is above the 50 that your'],
  [
    'turns of its own',
    'limits: { max_turns: 4 }',
    { roles: { tester: { max_turns: 3 } } },
    'above the 3 that',
  ],
  [
    'tokens',
    'limits: { max_tokens_total: 1000001 }',
    {},
    'limits.max_tokens_total: 1000001 is above',
  ],
  [
    'money',
    'limits: { max_cost_usd: 2 }',
    { api: { backend: 'scripted' }, agent: { max_cost_usd: 1 } },
    'limits.max_cost_usd: 2 is above the 1',
  ],
  ['a model', 'model: dear', {}, 'model: cannot be set here; possible are name, tools, limits'],
  ['a backend', 'backend: command', {}, 'backend: cannot be set here'],
  ['a prompt', 'prompt: You obey.', {}, 'prompt: cannot be set here'],
  ['a file as prompt', 'prompt_file: /etc/passwd', {}, 'prompt_file: cannot be set here'],
  ['the network', 'network: true', {}, 'network: a project can only revoke it'],
  ['a sandbox', 'sandbox: { mode: "off" }', {}, 'sandbox: cannot be set here'],
  ['credentials', 'api: { base_url: "https://evil.example" }', {}, 'api: cannot be set here'],
  ['places', 'concurrency: 9', {}, 'concurrency: cannot be set here'],
  [
    'commands that nothing holds',
    'verify: [curl evil]',
    { sandbox: { mode: 'off' } },
    'verify: adds commands, and sandbox.mode is off',
  ],
  [
    'leave that nobody could give',
    'require_approval: [bash]',
    { api: { backend: 'codex' } },
    'the tester works with codex, which cannot ask',
  ],
  [
    'a limit that nobody can keep',
    'limits: { max_cost_usd: 1 }',
    { api: { backend: 'builtin', provider_model: 'my-model' } },
    'the tester runs my-model, whose price is not known',
  ],
  ['no end', 'tools: [read]', {}, 'tools: must include finish'],
])(
  'a project cannot give a role %s: the file is ignored by name, and the server starts',
  (_, file, more, problem) => {
    const config = { ...confined, ...more };

    const { settings, projectRoles } = resolve({ 'tester.yml': file }, config);

    expect(projectRoles).toEqual([
      {
        role: 'tester',
        path: '.agent/roles/tester.yml',
        narrowed: [],
        ignored: expect.stringContaining(problem),
      },
    ]);
    expect(settings.roles).toEqual(rolesWithout(config));
  },
);

test('a file that wants too much is ignored as a whole', () => {
  const { settings } = resolve({ 'tester.yml': 'tools: [finish]\nlimits: { max_turns: 999 }' });

  expect(settings.roles).toEqual(rolesWithout());
});

const bomb = `a: &a [x, x]\n${'bcdefgh'
  .split('')
  .map((name, at) => `${name}: &${name} [*${'abcdefg'[at]}, *${'abcdefg'[at]}]`)
  .join('\n')}`;

test.each<[string, string | Buffer, string]>([
  ['aliases', bomb, 'Alias resolution is disabled'],
  ['more than it needs', `notes: ${'a'.repeat(17_000)}`, 'it has more than 16384 bytes'],
  ['other bytes than text', Buffer.from([0x6e, 0x3a, 0xff, 0xfe]), 'not UTF-8'],
  ['no end of depth', '['.repeat(16_000), 'not YAML: '],
  ['no end of keys', `${'? '.repeat(8_000)}`, 'not YAML: '],
  ['a key twice', 'notes: a\nnotes: b', 'not YAML: Map keys must be unique'],
  ['a tag', 'notes: !!js/function "x"', 'not YAML: Unresolved tag'],
  ['two documents', 'notes: a\n---\nnotes: b', 'not YAML: '],
  ['a list', '- notes', 'file: '],
  ['nothing', '', 'file: '],
  ['words for a terminal', '"\\e[31mred\\a\\nline": 1', 'line: cannot be set here'],
])('a file with %s is ignored by name, at once', (_, file, problem) => {
  const began = performance.now();

  const { settings, projectRoles } = resolve({ 'tester.yml': file });

  expect(performance.now() - began).toBeLessThan(15_000);
  const [{ path, ignored } = {}] = projectRoles;
  expect([path, ignored]).toEqual(['.agent/roles/tester.yml', expect.stringContaining(problem)]);
  expect(ignored).toMatch(/^[\x20-\x7e…]{1,401}$/);
  expect(settings.roles).toEqual(rolesWithout());
});

test.each<[string, (roles: string) => void, string]>([
  [
    'a symlink out of the project',
    (roles) => symlinkSync('/etc/passwd', join(roles, 'tester.yml')),
    'it leads out of the project',
  ],
  [
    'a symlink to nowhere',
    (roles) => symlinkSync('nowhere', join(roles, 'tester.yml')),
    'it does not exist',
  ],
  [
    'a symlink to itself',
    (roles) => symlinkSync('tester.yml', join(roles, 'tester.yml')),
    'it is a symlink that cannot be followed',
  ],
  [
    'a pipe',
    (roles) => void execFileSync('mkfifo', [join(roles, 'tester.yml')]),
    'it is not a regular file',
  ],
  ['a folder', (roles) => mkdirSync(join(roles, 'tester.yml')), 'it is not a regular file'],
  [
    'a device',
    (roles) => symlinkSync('/dev/zero', join(roles, 'tester.yml')),
    'it leads out of the project',
  ],
])('%s is not read', (_, plant, problem) => {
  const root = temporaryFolder();
  mkdirSync(join(root, '.agent', 'roles'), { recursive: true });
  plant(join(root, '.agent', 'roles'));

  const { projectRoles, settings } = resolve({}, confined, root);

  expect(projectRoles).toMatchObject([
    { path: '.agent/roles/tester.yml', ignored: expect.stringContaining(problem) },
  ]);
  expect(settings.roles).toEqual(rolesWithout());
});

test('a linked folder of roles is not read', () => {
  const root = temporaryFolder();
  const elsewhere = temporaryFolder();
  writeFileSync(join(elsewhere, 'tester.yml'), 'tools: [finish]');
  writeFileSync(join(elsewhere, 'secret.yml'), '');
  mkdirSync(join(root, '.agent'));
  symlinkSync(elsewhere, join(root, '.agent', 'roles'));

  const { projectRoles } = resolve({}, confined, root);

  expect(projectRoles).toEqual([
    { role: null, path: '.agent/roles', narrowed: [], ignored: 'it leads out of the project' },
  ]);
});

test('a file that is no role is named when it is YAML, and ignored otherwise', () => {
  const { projectRoles } = resolve({
    'janitor.yml': 'tools: []',
    'tester.yaml': '',
    'README.md': 'hello',
  });

  expect(projectRoles.map(({ path }) => path).toSorted()).toEqual([
    '.agent/roles/janitor.yml',
    '.agent/roles/tester.yaml',
  ]);
  expect(projectRoles[0]?.ignored).toMatch(/is not the file of a role; those are engineer\.yml/);
});

test('no project file ever gives a role more', () => {
  const tools = fc.subarray(['finish', 'read', 'bash', 'write']);
  const limits = fc.record(
    {
      timeout_seconds: fc.integer({ min: 1, max: 700 }),
      max_turns: fc.integer({ min: 0, max: 25 }),
      max_tokens_total: fc.integer({ min: 1, max: 1_200_000 }),
    },
    { requiredKeys: [] },
  );
  const withFinish = tools.map((names) => [...new Set([...names, 'finish'])]);
  const file = fc.record(
    { tools: fc.oneof(tools, withFinish), limits, require_approval: tools, notes: fc.string() },
    { requiredKeys: [] },
  );
  const root = temporaryFolder();
  const config = {
    ...confined,
    roles: { tester: { tools: ['read', 'bash', 'finish'], max_turns: 20 } },
  };
  const own = rolesWithout(config).tester;
  let counted = 0;

  fc.assert(
    fc.property(file, (given) => {
      const { settings, projectRoles } = resolve(
        { 'tester.yml': JSON.stringify(given) },
        config,
        root,
      );
      const { tester } = settings.roles;
      if (projectRoles[0]?.ignored === null) counted += 1;

      expect(own.tools).toEqual(expect.arrayContaining([...tester.tools]));
      expect(tester.tools).toContain('finish');
      expect(tester.approvals).toEqual(expect.arrayContaining([...own.approvals]));
      expect(tester.timeoutMs).toBeLessThanOrEqual(own.timeoutMs);
      expect(tester.maxTurns).toBeLessThanOrEqual(20);
      expect(tester.maxTokensTotal ?? 0).toBeLessThanOrEqual(1_000_000);
      expect(tester).toMatchObject({ model: own.model, backend: own.backend, prompt: own.prompt });
    }),
    { numRuns: 200 },
  );
  expect(counted).toBeGreaterThan(20);
});
