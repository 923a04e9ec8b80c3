import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

test("the user's files are merged: every project, this project, the named file, environment", async () => {
  const { agentWith, configFile } = openProject();
  const home = temporaryFolder();
  const agent = (...words: string[]) => agentWith({ XDG_CONFIG_HOME: home }, ...words);
  const own = (await agent('config', 'path')).out.trim();
  const everywhere = join(home, 'agent-task-server', 'config.json');
  mkdirSync(dirname(own), { recursive: true });
  writeFileSync(everywhere, JSON.stringify({ agent: { max_turns: 7, max_retries: 1 } }));
  writeFileSync(own, JSON.stringify({ agent: { max_turns: 8 }, server: { port: 1 } }));

  const rows = JSON.parse((await agent('config', '--json')).out);
  const of = (key: string) => rows.find((row: { key: string }) => row.key === key);

  expect(own).toMatch(/agent-task-server\/projects\/[^/]+-[0-9a-f]{12}\.json$/);
  expect(of('agent.max_retries')).toMatchObject({ value: 1, origin: everywhere });
  expect(of('agent.max_turns')).toMatchObject({ value: 8, origin: own });
  expect(of('server.port')).toMatchObject({ value: 0, origin: configFile });
  expect(of('api.max_tokens')).toMatchObject({ origin: 'default' });
  expect((await agent('config', 'get', 'agent.max_turns')).out).toBe('8\n');
  expect((await agent('config', 'set', 'agent.max_turns', '9')).code).toBe(0);
  expect((await agent('config', 'get', 'agent.max_turns')).out).toBe('9\n');
  expect(await agent('config', 'set', 'agent.max_turns', 'many')).toMatchObject({ code: 78 });
  expect(await agent('config', 'set', 'agent.max_trns', '9')).toMatchObject({
    code: 2,
    err: expect.stringContaining('did you mean agent.max_turns?'),
  });
  expect(await agent('config', 'set', 'agent.verify', '["npm test"]')).toMatchObject({
    code: 2,
    err: expect.stringMatching(/--verify "<command>"[\s\S]*roles\.<name>\.verify/),
  });
  expect((await agent('config', 'get', 'agent.max_turns')).out).toBe('9\n');
});

test.each([
  [
    ['workspace.copy', 'node_modules,.env'],
    `nothing was written: workspace.copy: expected a list of at most 50 entries, got "node_modules,.env"; a list is written as JSON: agent config set workspace.copy '["node_modules",".env"]'\n`,
  ],
  [
    ['api.prices', '3'],
    `; an object is written as JSON: agent config set api.prices '{"<name>": …}'\n`,
  ],
  [['roles.tester.verify', 'npm test'], `agent config set roles.tester.verify '["npm test"]'\n`],
  [['agent.max_turns', '0'], 'agent.max_turns: expected a whole number from 1 to 1000, got 0\n'],
])(
  'config set %j says what was wrong, and nothing of a file that it did not write',
  async (words, message) => {
    const { agentWith } = openProject();

    const { code, err } = await agentWith(
      { XDG_CONFIG_HOME: temporaryFolder() },
      'config',
      'set',
      ...words,
    );

    expect(code).toBe(78);
    expect(err).toContain(message);
    expect(err).not.toMatch(/line \d|\.json/);
  },
);

test('a server that runs reads what config set wrote, and what it cannot read is named', async () => {
  const { agentWith, stateDir } = openProject();
  const own = { XDG_CONFIG_HOME: temporaryFolder() };
  const set = async (...words: string[]) => (await agentWith(own, 'config', 'set', ...words)).err;
  const log = () => readFileSync(join(stateDir, 'server.log'), 'utf8');
  const others = 'note: servers of other projects read it when they start again\n';

  expect(await set('agent.max_turns', '9')).toBe('');
  expect(await set('agent.max_retries', '1', '--global')).toBe(others);
  await agentWith(own, 'server', 'start');

  const overruled = /^note: it does not count in this project: \S+ sets agent.max_turns, .*\n/;
  const used = 'note: the server that runs uses it from now on\n';
  expect(await set('workspace.setup', '{"commands":["npm ci"]}')).toBe(used);
  await vi.waitFor(() => expect(log()).toContain('"configuration reloaded"'));
  for (const [key, value] of [
    ['workspace.copy', '["node_modules"]'],
    ['tracker.export_node', 'web-2'],
  ] as const)
    expect(await set(key, value)).toBe(
      `note: the server that runs reads ${key} when it starts again: agent server restart\n`,
    );
  expect(await set('agent.max_retries', '2', '--global')).toBe(`${used}${others}`);
  const last = await set('agent.max_turns', '8', '--global');
  expect(last).toMatch(overruled);
  expect(last.replace(overruled, '')).toBe(others);
});

test('config unset removes a value of yours, and what is empty then', async () => {
  const { agentWith } = openProject();
  const home = { XDG_CONFIG_HOME: temporaryFolder() };
  const config = (...words: string[]) => agentWith(home, 'config', ...words);
  const file = (await config('path')).out.trim();
  await config('set', 'workspace.setup', '{"commands":["npm ci"],"network":true}');
  await config('set', 'agent.max_turns', '9');

  expect((await config('unset', 'agent.max_turns')).out).toBe(
    `removed agent.max_turns from ${file}\n`,
  );
  expect((await config('get', 'agent.max_turns')).out).toBe('50\n');
  expect((await config('unset', 'workspace.setup.network')).code).toBe(0);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    workspace: { setup: { commands: ['npm ci'] } },
  });
  expect((await config('unset', 'workspace.setup')).code).toBe(0);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({});
  expect(await config('unset', 'agent.max_turns')).toMatchObject({
    code: 2,
    err: expect.stringContaining(`agent.max_turns is not set in ${file}`),
  });
});

test('config set and get take a group of keys', async () => {
  const { agentWith } = openProject();
  const home = { XDG_CONFIG_HOME: temporaryFolder() };
  const setup = '{"commands":["npm ci"],"network":true}';

  const { code } = await agentWith(home, 'config', 'set', 'workspace.setup', setup);

  expect(code).toBe(0);
  const { out } = await agentWith(home, 'config', 'get', 'workspace.setup');
  expect(JSON.parse(out)).toMatchObject(JSON.parse(setup));
});

const priced = '{"input_per_million":1.25,"output_per_million":10}';

test('config set refuses what a server would refuse, with the code of its start, and writes nothing', async () => {
  const { agentWith } = openProject({ api: { provider_model: 'our-5.1' } });
  const home = { XDG_CONFIG_HOME: temporaryFolder() };
  const config = (...words: string[]) => agentWith(home, 'config', ...words);
  const file = (await config('path')).out.trim();

  expect(await config('set', 'agent.max_cost_usd', '5')).toMatchObject({
    code: 78,
    err: expect.stringMatching(/nothing was written: .*our-5\.1, whose price is not known/),
  });
  expect(existsSync(file)).toBe(false);
  expect(await config('set', 'roles.__proto__.network', 'true')).toMatchObject({
    code: 78,
    err: expect.stringContaining('nothing was written: __proto__ cannot be the name of a key'),
  });
  expect(existsSync(file)).toBe(false);
  expect(await config('set', 'api.prices."our-5.1".output_per_million', '10')).toMatchObject({
    code: 78,
    err: expect.stringContaining(
      "nothing was written: api.prices.our-5.1: input_per_million is missing, and the price table does not know our-5.1; set the whole price: agent config set 'api.prices.",
    ),
  });
  expect(await config('set', 'api.prices."our-5.1', priced)).toMatchObject({ code: 2 });
  expect(existsSync(file)).toBe(false);

  // The dots in the name of a model need no quotes.
  expect(await config('set', 'api.prices.our-5.1', priced)).toMatchObject({ code: 0 });
  expect((await config('get', 'api.prices.our-5.1.output_per_million')).out).toBe('10\n');
  expect(await config('set', 'agent.max_cost_usd', '5')).toMatchObject({ code: 0 });
  expect(await config('set', 'api.prices."our-5.1".output_per_million', '11')).toMatchObject({
    code: 0,
  });
  expect((await config('get', 'api.prices."our-5.1".output_per_million')).out).toBe('11\n');
  expect(await config('unset', 'api.prices."our-5.1"')).toMatchObject({ code: 78 });
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    agent: { max_cost_usd: 5 },
    api: { prices: { 'our-5.1': { ...JSON.parse(priced), output_per_million: 11 } } },
  });
});

test('a broken file is mended step by step', async () => {
  const { agentWith } = openProject();
  const home = { XDG_CONFIG_HOME: temporaryFolder() };
  const config = (...words: string[]) => agentWith(home, 'config', ...words);
  const file = (await config('path')).out.trim();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '{"agent":{"max_turns":0,"max_retries":99}}');

  const { code, err } = await config('set', 'agent.max_turns', '9');

  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringContaining('warning: servers still refuse the configuration'),
  });
  expect(await config('set', 'agent.max_turns', '0')).toMatchObject({ code: 78 });
  expect(await config('set', 'agent.max_retries', '1')).toMatchObject({ code: 0, err: '' });
});

test('a server that refused a configuration says so everywhere, and the old one holds', async () => {
  const { agentWith, serverFile } = openProject();
  const home = { XDG_CONFIG_HOME: temporaryFolder() };
  const agent = (...words: string[]) => agentWith(home, ...words);
  await agent('server', 'start');
  const file = (await agent('config', 'path')).out.trim();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '{"agent":{"max_turns":0}}');
  const why = 'the server refused its new configuration, and goes on with the one before';
  const health = async () =>
    JSON.parse((await agent('server', 'status', '--json')).out).health.checks.configuration;
  expect(await health()).toMatchObject({ status: 'ok' });

  process.kill(serverFile().pid, 'SIGHUP');
  await vi.waitFor(async () => expect(await health()).toMatchObject({ status: 'failing' }));

  expect((await health()).detail).not.toMatch(/\/|max_turns/);
  expect((await agent('server', 'status')).err).toContain(`${why}: ${file}: agent.max_turns`);
  expect((await agent('doctor')).err).toContain(why);
  const run = await agent('engineer', 'look at it', '--model', 'scripted');
  expect(run).toMatchObject({ code: 0, err: expect.stringContaining(`warning: ${why}`) });
  writeFileSync(file, '{"agent":{"max_turns":9}}');
  process.kill(serverFile().pid, 'SIGHUP');
  await vi.waitFor(async () => expect(await health()).toMatchObject({ status: 'ok' }));
});

test('what only the environment of the server makes wrong is said by the command that wrote it', async () => {
  const { agentWith } = openProject();
  const home = { XDG_CONFIG_HOME: temporaryFolder() };
  const config = (...words: string[]) => agentWith(home, 'config', ...words);
  await config('set', 'api.proxy.base_url', 'https://proxy.example/v1');
  await agentWith({ ...home, API_MODE: 'proxy' }, 'server', 'start');

  const { code, out, err } = await config('unset', 'api.proxy.base_url');

  expect({ code, out }).toEqual({
    code: 0,
    out: expect.stringContaining('removed api.proxy.base_url'),
  });
  expect(err).toContain(
    'warning: the server refused its new configuration, and goes on with the one before',
  );
  expect(err).not.toContain('uses it from now on');
});
