import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { configSchema } from '../../src/cli/config/schema/config-schema.ts';
import { install } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary.ts';

const here = fileURLToPath(new URL('../..', import.meta.url));
const shipped = join(here, 'configs', 'agent-server.json');

const doctor = async ({ run }: ReturnType<typeof install>) => {
  const { checks, config } = JSON.parse((await run('agent', 'doctor', '--json')).stdout);
  return { config, said: checks.find(({ check }: { check: string }) => check === 'config').detail };
};

test('the shipped file has the built-in defaults, and its port is not a choice', () => {
  expect(loadConfig({}, {})).toMatchObject({
    config: configSchema.parse({}),
    file: shipped,
    fileChosen: false,
    portChosen: false,
  });
});

test('the shipped file names only keys with their default values', () => {
  const defaults = configSchema.parse({});

  expect(defaults).toMatchObject(JSON.parse(readFileSync(shipped, 'utf8')));
});

test('the port of a named file is a choice', () => {
  expect(loadConfig({ config: shipped }, {})).toMatchObject({ fileChosen: true, portChosen: true });
});

test('a port is no choice of the user because another key is set', () => {
  const home = temporaryFolder();
  const file = join(home, 'agent-task-server', 'config.json');
  const env = { XDG_CONFIG_HOME: home };
  const project = { defaultDir: join(home, 'state', 'it-0') };
  mkdirSync(dirname(file));
  writeFileSync(file, JSON.stringify({ server: { max_concurrent_agents: 7 } }));

  const { fileChosen, portChosen } = loadConfig({ project }, env);
  writeFileSync(file, JSON.stringify({ server: { port: 8080 } }));

  expect([fileChosen, portChosen]).toEqual([true, false]);
  expect(loadConfig({ project }, env).portChosen).toBe(true);
});

test('a change in the default file applies when no file is named, and doctor says so', async () => {
  const installed = install();
  writeFileSync(installed.defaultFile, JSON.stringify({ server: { max_concurrent_agents: 7 } }));

  const { config, said } = await doctor(installed);

  expect(config.server.max_concurrent_agents).toBe(7);
  expect(said).toBe(`${installed.defaultFile} (the default file)`);
});

test('a port that was changed in the default file is a choice: no other replaces it', {
  tags: ['slow'],
}, async () => {
  const { run, defaultFile } = install();
  const taken = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  writeFileSync(defaultFile, JSON.stringify({ server: { port } }));

  const { exitCode, stderr } = await run('agent', 'server', 'start');

  expect([exitCode, stderr]).toEqual([
    6,
    expect.stringContaining(`agent: the server did not start: agent-server: port ${port} is`),
  ]);
});

test('without a default file the built-in defaults apply', async () => {
  const installed = install();
  rmSync(installed.defaultFile);

  const { config, said } = await doctor(installed);

  expect(config).toEqual(configSchema.parse({}));
  expect(said).toBe('built-in defaults (no file)');
});

test('an invalid default file is refused with 78, naming file and key', async () => {
  const { run, defaultFile } = install();
  writeFileSync(defaultFile, JSON.stringify({ server: { port: 70_000 } }));

  const [agent, server] = [await run('agent', 'doctor'), await run('agent-server', '--server')];

  for (const { exitCode, stderr } of [agent, server])
    expect([exitCode, stderr]).toEqual([
      78,
      expect.stringContaining(`${defaultFile}: server.port: `),
    ]);
});
