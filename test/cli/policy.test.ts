import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { settingsFrom } from '../../src/cli/config/settings.ts';
import { openProject } from '../support/cli.ts';
import { noSandbox, notRoot, testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';

const asRoot = testUnless(notRoot);
const tags: ['root'] = ['root'];

const fileOf = (policy: unknown): string => {
  const file = join(temporaryFolder(onTestFinished), 'policy.json');
  writeFileSync(file, typeof policy === 'string' ? policy : JSON.stringify(policy));
  return file;
};

const under = (policy: unknown, config: object) => {
  const project = openProject(config);
  const env = { AGENT_POLICY_FILE: fileOf(policy) };
  const counted = async (key: string): Promise<unknown> => {
    const { out, err } = await project.agentWith(env, 'config', 'get', key, '--json');
    expect(err).toBe('');
    return JSON.parse(out).value;
  };
  return { ...project, env, counted };
};

asRoot.for([
  ['sandbox.mode', 'off', 'required', 'required'],
  ['sandbox.mode', 'required', 'auto', 'required'],
  ['sandbox.network', true, false, false],
  ['sandbox.network', false, true, false],
  ['sandbox.network', ['a.example.com', 'b.org'], ['*.example.com'], ['a.example.com']],
  ['agent.require_approval', ['write'], ['bash'], ['bash', 'write']],
  ['workspace.merge', 'squash', 'none', 'none'],
] as const)(
  '%s %o under a policy that requires %o is %o',
  {
    tags,
  },
  async ([key, mine, wanted, counts]) => {
    const [section = '', name = ''] = key.split('.');
    const { counted } = under(
      { require: { [section]: { [name]: wanted } } },
      { [section]: { [name]: mine } },
    );

    expect(await counted(key)).toEqual(counts);
  },
);

asRoot('what a role has of its own is held, too', { tags }, async () => {
  const { counted } = under(
    {
      require: { sandbox: { network: false }, agent: { require_approval: ['bash'] } },
      at_most: { 'agent.max_turns': 9, 'budget.day_usd': 5, 'sandbox.memory_mb': 2_048 },
    },
    {
      roles: { engineer: { network: true, require_approval: ['write'], max_turns: 12 } },
      sandbox: { memory_mb: 0, allow_task_network: true },
      agent: { max_turns: 7 },
    },
  );

  expect(await counted('roles.engineer.network')).toBe(false);
  expect(await counted('roles.engineer.require_approval')).toEqual(['bash', 'write']);
  expect(await counted('roles.engineer.max_turns')).toBe(9);
  expect(await counted('agent.max_turns')).toBe(7);
  expect(await counted('budget.day_usd')).toBe(5);
  expect(await counted('sandbox.memory_mb')).toBe(2_048);
  expect(await counted('sandbox.allow_task_network')).toBe(false);
});

asRoot('what the file of a role sets is held, too', { tags }, () => {
  const { env, configFile, root } = under(
    { require: { sandbox: { network: false }, agent: { require_approval: ['bash'] } } },
    { roles: { engineer: { file: 'engineer.yml' } } },
  );
  const file = join(configFile, '..', 'engineer.yml');
  writeFileSync(file, 'network: true\nrequire_approval: [write]\n');

  const loaded = loadConfig({ config: configFile }, { ...process.env, ...env });
  const { engineer } = settingsFrom(loaded, root).roles;

  expect([engineer.network, engineer.approvals]).toEqual([false, ['bash', 'write']]);
});

asRoot.for([
  ['in a list', { notify: { webhooks: [{ url: 'https://evil.org/x', secret_env: 'S' }] } }],
  ['in capitals', { mcp: { servers: { x: { url: 'HTTPS://evil.org/' } } } }],
  ['after a space', { mcp: { servers: { x: { url: ' https://evil.org/' } } } }],
  ['of a database', { store: { url: 'postgres://me@evil.org:5432/db' } }],
] as const)(
  'an address %s is refused where only.hosts leaves it out',
  { tags },
  async ([, config]) => {
    const { agentWith, env } = under({ only: { hosts: ['*.example.com'] } }, config);

    expect(await agentWith(env, 'config', 'get', 'agent.max_turns')).toMatchObject({
      code: 78,
      err: expect.stringContaining('evil.org is not among policy.only.hosts'),
    });
  },
);

testUnless(notRoot ?? noSandbox)('a run cannot pass it by its flags', { tags }, async () => {
  const only = { providers: ['anthropic'], models: ['anthropic/claude-*'] };
  const { agentWith, env } = under({ at_most: { 'agent.max_turns': 1 }, only }, {});
  const keys = { ...env, OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' };

  const turns = await agentWith(
    keys,
    ...['engineer', 'look around', '--model', 'scripted', '--max-turns', '30'],
  );
  const provider = await agentWith(keys, 'engineer', 'look here', '--model', 'openai/gpt-5.1');
  const model = await agentWith(keys, 'engineer', 'look there', '--model', 'anthropic/other');

  expect(turns).toMatchObject({
    code: 1,
    out: expect.stringMatching(/the limit of 1 turns is reached/),
  });
  expect(provider).toMatchObject({
    code: 78,
    err: expect.stringContaining('openai is not among policy.only.providers (anthropic)'),
  });
  expect(model).toMatchObject({
    code: 78,
    err: expect.stringContaining('anthropic/other is not among policy.only.models'),
  });
});

asRoot(
  'an address that it leaves out is refused, and doctor says all rules',
  {
    tags,
  },
  async () => {
    const policy = {
      require: { sandbox: { mode: 'required' } },
      only: { hosts: ['*.example.com'] },
    };
    const { agentWith, env } = under(policy, { sandbox: { mode: 'off' } });
    const set = (url: string) => agentWith(env, 'config', 'set', 'api.base_url', url);

    const [refused, allowed] = [
      await set('https://models.evil.org/v1'),
      await set('https://models.example.com/v1'),
    ];
    const doctor = await agentWith(env, 'doctor');
    const said = doctor.out.replaceAll(/\s+/g, ' ');

    expect(refused).toMatchObject({
      code: 78,
      err: expect.stringContaining('models.evil.org is not among policy.only.hosts'),
    });
    expect(allowed.code).toBe(0);
    expect(said).toContain('sandbox.mode is required; only these hosts: *.example.com');
    expect(said).toMatch(/sandbox\.mode off of \S+ does not count: required does/);
  },
);

asRoot.for([
  ['not JSON', '{', /policy: .*expected/],
  ['an unknown key', { at_most: { 'agent.turns': 1 } }, /at_most: there is no key agent\.turns/],
  ['a wrong value', { require: { sandbox: { mode: 'sure' } } }, /require\.sandbox\.mode: expected/],
] as const)('a policy with %s stops the server', { tags }, async ([, policy, says]) => {
  const { agentWith, env } = under(policy, {});

  const started = await agentWith(env, 'server', 'start');

  expect(started).toMatchObject({ code: 78, err: expect.stringMatching(says) });
});

test('a file that others can write, or that is not of root, does not count and is named', async () => {
  const { agentWith, env } = under({ require: { agent: { max_turns: 3 } } }, {});
  chmodSync(env.AGENT_POLICY_FILE, 0o666);

  const doctor = await agentWith(env, 'doctor');
  const turns = await agentWith(env, 'config', 'get', 'agent.max_turns', '--json');

  expect(doctor.out.replaceAll(/\s+/g, ' ')).toMatch(/problem policy \S+ does not count: /);
  expect(JSON.parse(turns.out).value).toBe(50);
});

test.each([
  [{ workspace: { merge: 'squash' } }, 'not_author needs workspace.merge none'],
  [{ forge: { merge: 'when_green' } }, 'not_author needs forge.merge never'],
])('where %o merges by itself, policy.merge not_author is refused', async (more, says) => {
  const { agent } = openProject({ policy: { merge: 'not_author' }, ...more });

  expect(await agent('doctor')).toMatchObject({ code: 78, err: expect.stringContaining(says) });
});
