import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Project } from '../../src/cli/config/places/project.ts';
import { knownProjects, registerProject } from '../../src/cli/hub/known-projects.ts';
import { createIdleWatch } from '../../src/cli/hub/run-hub.ts';
import { openProject } from '../support/cli.ts';
import { openHub } from '../support/hub.ts';
import { temporaryFolder } from '../support/temporary.ts';

const anAddress = /^http:\/\/localhost:\d+\/p\/agent-test-[\w-]+\/#c=[\w-]{43}$/;

test('open leads to the hub; --direct, and --no-start without a hub, lead to the server', async () => {
  const project = openProject();
  const { agentIn, address, hub } = openHub(onTestFinished, [project]);
  await agentIn(0, 'server', 'start');
  const server = /^http:\/\/127\.0\.0\.1:\d+\/#c=[\w-]{43}$/;
  expect((await agentIn(0, 'open', '--print', '--no-start')).out.trim()).toMatch(server);
  expect((await hub('status')).code).toBe(6);
  const id = (await agentIn(0, 'create', 'x')).out.trim();

  const opened = await address(0);

  expect(opened).toMatch(anAddress);
  expect((await agentIn(0, 'open', '--print', '--direct')).out.trim()).toMatch(server);
  expect(await address(0, '--no-start')).toMatch(anAddress);
  expect(await address(0, id)).toMatch(/#c=[\w-]{43}&task=bd-\w+$/);
  expect((await agentIn(0, 'open', '--print', 'bd-none')).code).toBe(3);
  expect(JSON.parse((await agentIn(0, 'open', '--json')).out)).toEqual({
    url: expect.stringMatching(anAddress),
    expires_at: expect.stringMatching(/Z$/),
  });
});

test('hub.port is in the file for every project, and a port that is in use is replaced', async () => {
  const project = openProject();
  const { env, agentIn, hub } = openHub(onTestFinished, [project]);
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void taken.close());
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  const refused = await agentIn(0, 'config', 'set', 'hub.port', '9000');
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining('--global')]);
  const folder = join(env.HOME, '.config', 'agent-task-server');
  expect(existsSync(join(folder, 'projects'))).toBe(false);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ hub: { port } }));
  const url = JSON.parse((await hub('start', '--json')).out).url;

  expect(url).toMatch(/^http:\/\/localhost:\d+$/);
  expect(url).not.toBe(`http://localhost:${port}`);
});

test('a name is the name of the folder in lower case, and stays', () => {
  const home = temporaryFolder();
  const register = (...path: string[]) => {
    const root = join(home, ...path);
    const defaultDir = join(home, 'states', path.join('-'));
    const project: Project = { root, stateDir: defaultDir, defaultDir };
    return registerProject(project, undefined).slug;
  };

  expect(register('a', 'Shop')).toBe('shop');
  expect(register('b', 'shop')).toBe('shop-2');
  expect(register('b', 'My Shop/..')).not.toContain('/');
  expect(register('c', '.hidden')).toBe('hidden');
  expect(register('c', '...')).toBe('project');
  expect([register('b', 'shop'), register('a', 'Shop')]).toEqual(['shop-2', 'shop']);
  expect(knownProjects(join(home, 'states', 'hub')).map(({ slug }) => slug)).toContain('shop-2');
});

test('it ends 12 hours after its last request and its last running project', () => {
  const hour = 3_600_000;
  const time = { now: 0, running: false };
  const { look, use } = createIdleWatch(
    () => time.running,
    () => time.now,
  );
  const at = (hours: number): boolean => {
    time.now = hours * hour;
    return look();
  };

  expect(at(11.9)).toBe(false);
  use();
  expect(at(23.8)).toBe(false);
  time.running = true;
  expect(at(30)).toBe(false);
  time.running = false;
  expect([at(41.9), at(42)]).toEqual([false, true]);
});
