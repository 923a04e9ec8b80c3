import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { settingsFrom } from '../../src/cli/config/settings.ts';
import { makeCertificate } from '../support/certificate.ts';
import { openProject, plain } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';
import { noOpenssl, testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';

const fileWith = (config: object): string => {
  const file = join(temporaryFolder(), 'config.json');
  writeFileSync(file, JSON.stringify(config));
  return file;
};
const load = (config: object, env: NodeJS.ProcessEnv = {}, flags = {}) =>
  loadConfig({ config: fileWith(config), ...flags }, env);

test.each<[string, object, string]>([
  [
    'a tool that does not exist',
    { roles: { tester: { tools: ['rm', 'finish'] } } },
    'roles.tester.tools.0: expected read, write',
  ],
  [
    'a role that could never end',
    { roles: { tester: { tools: ['read'] } } },
    'roles.tester.tools: must include finish',
  ],
  ['a role that does not exist', { roles: { janitor: {} } }, 'roles.janitor: is not known here'],
  [
    'no turns',
    { agent: { max_turns: 0 } },
    'agent.max_turns: expected a whole number from 1 to 1000, got 0',
  ],
  [
    'a limit of cost below nothing',
    { agent: { max_cost_usd: -1 } },
    'agent.max_cost_usd: expected a number above 0 and at most 1000000, got -1',
  ],
  [
    'a key that travels unencrypted',
    { api: { base_url: 'http://models.example' } },
    'api.base_url: must be https',
  ],
  ['an address that is none', { api: { proxy: { base_url: 'models' } } }, 'api.proxy.base_url: '],
  [
    'a protocol that nobody speaks',
    { api: { protocol: 'soap' } },
    'api.protocol: expected auto, responses or chat, got "soap"',
  ],
  ['a proxy of no known kind', { api: { proxy: { type: 'magic' } } }, 'api.proxy.type: '],
  ['authentication by hope', { server: { auth: 'hope' } }, 'server.auth: '],
  ['a level that is none', { logging: { level: 'loud' } }, 'logging.level: '],
])('%s is refused by its key', (_, config, message) => {
  expect(() => load(config)).toThrow(message);
});

test.each<[string, object, NodeJS.ProcessEnv, object, string]>([
  [
    'in the file, under a flag',
    { server: { port: '8080' } },
    {},
    { port: 1 },
    'config.json: server.port: ',
  ],
  [
    'out of range in the file',
    { server: { port: 70_000 } },
    {},
    { port: 1 },
    'config.json: server.port: ',
  ],
  [
    'under a variable',
    { logging: { level: 'loud' } },
    { LOG_LEVEL: 'info' },
    {},
    'config.json: logging.level: ',
  ],
  ['of a whole section', { server: 5 }, {}, { port: 1 }, 'config.json: server: '],
  [
    'in a variable, under a flag',
    {},
    { SERVER_PORT: 'many' },
    { port: 1 },
    'SERVER_PORT: server.port: ',
  ],
])('a wrong value %s is refused although it would not count', (_, config, env, flags, message) => {
  expect(() => load(config, env, flags)).toThrow(message);
});

test.each<[string, object, NodeJS.ProcessEnv, string]>([
  [
    'the file',
    { api: { base_url: 'notaurl' } },
    {},
    'config.json: api.base_url: expected an address like http',
  ],
  [
    'a variable',
    {},
    { OPENAI_BASE_URL: 'foo' },
    'OPENAI_BASE_URL: api.base_url: expected an address like http',
  ],
  [
    'a variable with half an address',
    {},
    { OPENAI_BASE_URL: 'http:' },
    'OPENAI_BASE_URL: api.base_url: expected',
  ],
  [
    'the file, of a proxy',
    { api: { proxy: { base_url: 'notaurl' } } },
    {},
    'config.json: api.proxy.base_url: expected an address like http',
  ],
])('an address that is none is refused by name: %s', (_, config, env, message) => {
  expect(() => load(config, env)).toThrow(new RegExp(`${message}.*$`));
});

test('values that belong together may come from file and variable', () => {
  const proxy = { base_url: 'https://proxy.example' };

  expect(load({ api: { proxy } }, { API_MODE: 'proxy' }).config.api).toMatchObject({
    mode: 'proxy',
    proxy,
  });
  expect(load({ api: { mode: 'proxy' } }, { API_MODE: 'direct' }).config.api.mode).toBe('direct');
  expect(() => load({}, { API_MODE: 'proxy' })).toThrow(
    'api.proxy.base_url: is needed when api.mode is proxy',
  );
});

test.each<[string, object, string]>([
  [
    'a prompt that is not there',
    { roles: { tester: { prompt_file: 'none.md' } } },
    'roles.tester.prompt_file: ',
  ],
  [
    'a limit of cost without a price',
    { agent: { max_cost_usd: 1 }, api: { provider_model: 'my-model' } },
    'max_cost_usd: the engineer runs my-model, whose price is not known',
  ],
])('%s is refused before the server starts', (_, config, message) => {
  expect(() => settingsFrom(load(config), '/')).toThrow(message);
});

test.each<[string, object]>([
  ['a known model', {}],
  ['a known model that codex runs', { backend: 'codex', provider_model: 'gpt-5.1' }],
])('a limit of cost needs no price for %s', (_, api) => {
  const roles = { engineer: { model: 'gpt-5-mini' }, tester: { model: 'o3' } };
  const config = { agent: { max_cost_usd: 1 }, budget: { day_usd: 5 }, api, roles };
  const others = Object.fromEntries(
    ['architect', 'reviewer', 'product-manager'].map((role) => [role, { model: 'gpt-4.1' }]),
  );

  expect(() =>
    settingsFrom(load({ ...config, roles: { ...others, ...roles } }), '/'),
  ).not.toThrow();
});

test('doctor finds what would prevent the server from starting', async () => {
  const project = openProject({ roles: { tester: { prompt_file: 'none.md' } } });

  const [doctor, server] = [await project.agent('doctor'), await project.server('--server')];

  for (const ended of [doctor, server])
    expect(ended).toMatchObject({
      code: 78,
      err: expect.stringContaining('roles.tester.prompt_file: '),
    });
});

test('the file overrides the defaults, the environment the file, flags the environment', () => {
  const file = {
    server: { port: 1, host: '::1', max_concurrent_agents: 7 },
    logging: { level: 'warn' },
  };
  const env = { SERVER_PORT: '2', LOG_LEVEL: 'error', API_MODE: 'direct' };

  const { config } = load(file, env, { port: 3 });

  expect(config.server).toMatchObject({
    port: 3,
    host: '::1',
    max_concurrent_agents: 7,
    queue_limit: 10_000,
  });
  expect(config.logging).toEqual({ level: 'error', format: 'json' });
});

test.each([
  [{}, {}, 3],
  [{ max_concurrent_agents: 5 }, {}, 5],
  [{ max_concurrent_agents: 5, worker_pool_size: 2 }, {}, 2],
  [{ max_concurrent_agents: 2, worker_pool_size: 5 }, {}, 2],
  [{ worker_pool_size: 5 }, {}, 3],
  [{}, { maxConcurrent: 5 }, 5],
  [{ max_concurrent_agents: 2 }, { maxConcurrent: 5 }, 5],
  [{ max_concurrent_agents: 3, worker_pool_size: 1 }, { maxConcurrent: 5 }, 1],
])('the smaller of cap and pool applies: %j with flags %j is %d', (server, flags, cap) => {
  expect(settingsFrom(load({ server }, {}, flags), '/').cap).toBe(cap);
});

test('a variable sets the same cap as the flag, and the pool of this machine stays', () => {
  const cap = (server: object): number =>
    settingsFrom(load({ server }, { MAX_CONCURRENT_AGENTS: '5' }), '/').cap;

  expect([cap({}), cap({ worker_pool_size: 1 })]).toEqual([5, 1]);
});

test('a pool that is not set equals the cap', () => {
  const { config } = load({ server: { max_concurrent_agents: 8 } });

  expect([config.server.worker_pool_size, load({}).config.server.worker_pool_size]).toEqual([8, 3]);
});

test('max_concurrent_agents in a copy of the shipped file sets the number of agents', () => {
  const shipped = JSON.parse(
    readFileSync(new URL('../../configs/agent-server.json', import.meta.url), 'utf8'),
  );

  const edited = load({ ...shipped, server: { ...shipped.server, max_concurrent_agents: 6 } });

  expect(settingsFrom(edited, '/').cap).toBe(6);
});

test('a role has its own tools, model, limits, prompt and concurrency; the others keep the built-in ones', () => {
  const file = fileWith({
    agent: { timeout_seconds: 60, require_approval: ['bash'] },
    roles: {
      tester: {
        tools: ['read', 'finish'],
        model: 'small',
        max_turns: 3,
        timeout_seconds: 5,
        require_approval: [],
        prompt_file: 'tester.md',
        concurrency: 1,
      },
    },
  });
  writeFileSync(join(file, '..', 'tester.md'), 'You test.');

  const { roles } = settingsFrom(loadConfig({ config: file }, {}), '/');

  expect(roles.tester).toMatchObject({
    tools: ['read', 'finish'],
    model: 'small',
    maxTurns: 3,
    timeoutMs: 5_000,
    approvals: [],
    prompt: 'You test.',
    concurrency: 1,
  });
  expect(roles.engineer).toMatchObject({
    model: null,
    timeoutMs: 60_000,
    approvals: ['bash'],
    concurrency: null,
  });
  expect(roles.engineer.tools).toContain('bash');
});

const finish = { name: 'finish', arguments: '{"status":"done","summary":"over the proxy"}' };

test.each([
  ['chat', '/v1/chat/completions'],
  ['responses', '/v1/responses'],
])(
  'in proxy mode every call goes to the proxy, by %s, with the role’s model and what it costs',
  async (protocol, path) => {
    const proxy = await startModelServer(() => ({ kind: 'answer', calls: [finish] }));
    const project = openProject({
      api: {
        mode: 'proxy',
        protocol,
        proxy: { type: 'litellm', base_url: proxy.baseURL },
        base_url: 'https://never.invalid/v1',
        prices: { 'role-model': { input_per_million: 1_000, output_per_million: 2_000 } },
      },
      roles: { tester: { model: 'role-model' } },
    });
    const id = (await project.agent('create', 'Try it')).out.trim();

    const ended = await project.agentWith({ OPENAI_API_KEY: 'key-of-the-proxy' }, 'tester', id);

    expect(ended).toMatchObject({ code: 0, out: expect.stringContaining('over the proxy') });
    expect(proxy.requests.map((request) => [request.path, request.body['model']])).toEqual([
      [path, 'role-model'],
    ]);
    expect(proxy.requests[0]?.headers.authorization).toBe('Bearer key-of-the-proxy');
    const { usage } = JSON.parse((await project.agent('show', id, '--json')).out);
    expect(usage.cost_usd).toBeCloseTo(
      (usage.input_tokens * 1_000 + usage.output_tokens * 2_000) / 1e6,
      6,
    );
  },
);

testUnless(noOpenssl)(
  'a proxy at https is called when its certificate is trusted',
  { tags: ['slow'] },
  async () => {
    const { path, tls } = makeCertificate();
    const proxy = await startModelServer(() => ({ kind: 'answer', calls: [finish] }), { tls });
    const project = openProject(
      {
        api: { mode: 'proxy', proxy: { base_url: proxy.baseURL } },
        agent: { max_retries: 0 },
      },
      { ownServer: true },
    );
    const [one, two] = [await project.agent('create', 'one'), await project.agent('create', 'two')];
    const key = { OPENAI_API_KEY: 'key-of-the-proxy' };

    const untrusted = await project.agentWith(
      { ...key, NODE_EXTRA_CA_CERTS: '' },
      'engineer',
      one.out.trim(),
    );
    await project.stopServer();
    const trusted = await project.agentWith(
      { ...key, NODE_EXTRA_CA_CERTS: path },
      'engineer',
      two.out.trim(),
    );

    expect(untrusted).toMatchObject({
      code: 1,
      out: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    });
    expect(trusted).toMatchObject({ code: 0, out: expect.stringContaining('over the proxy') });
    expect(proxy.requests).toHaveLength(1);
  },
);

const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
};

test('SIGHUP applies a new configuration while agents run, and rejects a bad file', async () => {
  const project = openProject(
    {
      server: { port: 0, max_concurrent_agents: 1 },
      api: { backend: 'scripted' },
    },
    { ownServer: true },
  );
  await project.agent('server', 'start');
  const { pid, url } = project.serverFile();
  const token = readFileSync(join(project.stateDir, 'token'), 'utf8').trim();
  const cap = async (): Promise<number> => {
    const response = await fetch(`${url}/a2a/discovery`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return ((await response.json()) as { capabilities: { max_concurrent: number } }).capabilities
      .max_concurrent;
  };
  const log = (): string => readFileSync(join(project.stateDir, 'server.log'), 'utf8');
  expect(await cap()).toBe(1);

  writeFileSync(
    project.configFile,
    JSON.stringify({
      sandbox: plain.sandbox,
      workspace: plain.workspace,
      server: { port: 9, max_concurrent_agents: 4 },
      api: { backend: 'scripted' },
    }),
  );
  process.kill(pid, 'SIGHUP');
  await until(async () => (await cap()) === 4);
  expect(log()).toContain('"needs_restart":["server.port"]');

  writeFileSync(project.configFile, '{"server":{"max_concurrent_agents":0}}');
  process.kill(pid, 'SIGHUP');
  await until(() => log().includes('the previous one stays'));

  expect(log()).toContain('server.max_concurrent_agents: ');
  expect(await cap()).toBe(4);
});

test('the project’s files change neither the model nor its address', async () => {
  const project = openProject({});
  const planted = {
    api: { base_url: 'http://127.0.0.1:9', backend: 'scripted' },
    server: { auth: 'none' },
  };
  mkdirSync(join(project.root, 'configs'));
  for (const name of [
    'agent-server.json',
    'configs/agent-server.json',
    '.env',
    '.agent-server.json',
  ])
    writeFileSync(join(project.root, name), JSON.stringify(planted));

  const { config } = JSON.parse((await project.agent('doctor', '--json')).out);

  expect(config.api).toMatchObject({ base_url: 'https://api.openai.com/v1', backend: 'auto' });
  expect(config.server.auth).toBe('token');
});
