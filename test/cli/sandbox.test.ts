import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createBubblewrap } from '../../src/actors/sandbox/bubblewrap.ts';
import { openProject } from '../support/cli.ts';
import { noSandbox, testUnless } from '../support/needs.ts';

const { ok } = createBubblewrap({ readPaths: [], network: false }).check();

test('banner and doctor name the sandbox, or its absence', { tags: ['slow'] }, async () => {
  const project = openProject({ api: { backend: 'scripted' }, sandbox: { mode: 'auto' } });
  const off = openProject();

  const held = (await project.agent('doctor')).out;
  const open = (await off.agent('doctor')).out;
  const server = off.start('agent-server', ['--server']);
  let banner = '';
  server.stdout?.on('data', (chunk) => {
    banner += chunk;
  });
  while (!banner.includes('agent:// links'))
    await new Promise((resolve) => setTimeout(resolve, 20));

  expect(held).toMatch(
    ok ? /ok +sandbox +bubblewrap, network off, memory 4096 MB/ : /problem +sandbox +bubblewrap/,
  );
  expect(open).toMatch(/note +sandbox +off, by sandbox\.mode/);
  expect(banner).toMatch(/sandbox +off: commands run as you, unconfined/);
});

test('a required sandbox that does not work prevents the start of the server', async () => {
  const { server, agent } = openProject({ sandbox: { mode: 'required' } });
  if (ok) {
    expect((await agent('server', 'start')).code).toBe(0);
    return;
  }
  expect(await server('--server')).toMatchObject({
    code: 78,
    err: expect.stringContaining('sandbox.mode is required'),
  });
});

test('doctor --sandbox prints each probe, and says so where there is no sandbox', {
  tags: ['slow'],
}, async () => {
  const held = await openProject({ sandbox: { mode: 'auto' } }).agent('doctor', '--sandbox');
  const off = await openProject().agent('doctor', '--sandbox', '--json');

  if (ok)
    expect([held.code, held.out]).toEqual([
      0,
      expect.stringMatching(/held +read another project[\s\S]*(\d+) of \1 held/),
    ]);
  else expect([held.code, held.err]).toEqual([1, expect.stringContaining('no sandbox to test')]);
  expect([off.code, JSON.parse(off.out).probes]).toEqual([1, []]);
});

test('nothing in the project can turn the sandbox off', async () => {
  const project = openProject({ api: { backend: 'scripted' }, sandbox: { mode: 'auto' } });
  for (const folder of ['configs', '.agent', '.beads'])
    mkdirSync(join(project.root, folder), { recursive: true });
  for (const path of ['configs/agent-server.json', '.agent/config.json', '.beads/config.json'])
    writeFileSync(join(project.root, path), '{"sandbox":{"mode":"off"}}');

  const { out } = await project.agent('doctor', '--json');

  expect(existsSync(join(project.root, 'configs/agent-server.json'))).toBe(true);
  expect(JSON.parse(out).config.sandbox).toEqual({
    mode: 'auto',
    assistants: 'on',
    home: 'empty',
    home_paths: [],
    network: false,
    allow_task_network: false,
    memory_mb: 4_096,
    read_paths: [],
  });
});

test.each([
  { mode: 'none' },
  { read_paths: ['src'] },
  { netwrk: true },
  { memory_mb: 64 },
  { memory_mb: -1 },
  { home: 'all' },
  { home_paths: ['/etc'] },
  { home_paths: ['../other'] },
  { home_paths: ['.'] },
  { home_paths: ['~/'] },
  { home_paths: ['.config/agent-task-server'] },
])('%j is refused by name', async (sandbox) => {
  const { agent } = openProject({ sandbox });

  expect(await agent('doctor')).toMatchObject({
    code: 78,
    err: expect.stringContaining('sandbox'),
  });
});

testUnless(noSandbox)(
  'a program of api.command gets copies of home_paths, without the files of the server',
  async () => {
    const project = openProject();
    const look = 'cd ~; find . -type f | sort; echo x > .tool/settings';
    const config = {
      api: { backend: 'command', command: ['/bin/sh', '-c', look] },
      sandbox: { mode: 'auto', home: 'copy', home_paths: ['.tool', '~/.config'] },
      providers: { openrouter: { key_file: join(project.env.HOME, '.tool/key') } },
    };
    const others = ['.config/a', '.config/agent-task-server/x', '.netrc'];
    for (const file of ['.tool/settings', '.tool/key', ...others]) {
      mkdirSync(join(project.env.HOME, file, '..'), { recursive: true });
      writeFileSync(join(project.env.HOME, file), file, { mode: 0o600 });
    }
    writeFileSync(project.configFile, JSON.stringify(config));
    const id = (await project.agent('create', 'look')).out.trim();

    const ended = await project.agent('engineer', id);
    const { result } = JSON.parse((await project.agent('show', id, '--json')).out);

    expect(ended).toMatchObject({ code: 0 });
    expect(result.trim().split('\n')).toEqual(['./.config/a', './.tool/settings']);
    expect(readFileSync(join(project.env.HOME, '.tool/settings'), 'utf8')).toBe('.tool/settings');
  },
);

test('--network is refused unless the configuration allows it', async () => {
  const project = openProject({ api: { backend: 'scripted' } });
  const id = (await project.agent('create', 'a task')).out.trim();

  const refused = await project.agent('engineer', id, '--network');

  expect(refused).toMatchObject({
    code: 2,
    err: expect.stringContaining('set sandbox.allow_task_network'),
  });
  expect(JSON.parse((await project.agent('show', id, '--json')).out)).toMatchObject({
    status: 'queued',
    attempt: 0,
  });
  expect(await project.agent('engineer', id, '--no-network')).toMatchObject({ code: 0 });
});
