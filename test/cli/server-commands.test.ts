import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';

test('a restart ends the server and starts one with the configuration of this shell', async () => {
  const { agent, serverFile, stateDir, configFile } = openProject();
  await agent('server', 'start');
  const before = serverFile();

  const bad = join(stateDir, 'bad.json');
  writeFileSync(bad, '{"server": {"prot": 1}}');
  const refused = await agent('server', 'restart', '--config', bad);
  const noStart = await agent('server', 'restart', '--no-start');
  const kept = serverFile();
  const restarted = await agent('server', 'restart', '--config', configFile);
  const json = await agent('server', 'restart', '--json');

  expect(refused).toMatchObject({ code: 78, err: expect.stringContaining('did you mean port?') });
  expect(noStart).toMatchObject({ code: 2, out: '' });
  expect(kept).toEqual(before);
  expect(restarted).toMatchObject({
    code: 0,
    out: expect.stringContaining(`the server (pid ${before.pid}) has stopped\n`),
  });
  expect(restarted.out).toContain('is healthy');
  expect(JSON.parse(json.out)).toMatchObject({ running: true, pid: serverFile().pid });
  expect(serverFile().pid).not.toBe(before.pid);
});

test('a restart starts a server where none runs', async () => {
  const { agent } = openProject();

  expect(await agent('server', 'restart')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^http:\S+ is healthy\n/),
  });
});

const withLog = (lines: readonly string[]) => {
  const project = openProject();
  const log = join(project.stateDir, 'server.log');
  mkdirSync(project.stateDir, { recursive: true, mode: 0o700 });
  writeFileSync(log, lines.map((line) => `${line}\n`).join(''));
  return { ...project, log };
};

test('the log of the server is shown from its end, also after the stop', async () => {
  const many = Array.from({ length: 5_000 }, (_, n) => `line ${n} ${'ä'.repeat(40)}`);
  const { agent, log } = withLog([...many, 'last \u001b[31mred\u001b[0m']);
  appendFileSync(log, 'half');

  const two = await agent('server', 'logs', '-n', '2');
  const usual = await agent('server', 'logs');
  const all = await agent('server', 'logs', '--lines', '9000');
  const none = await agent('server', 'logs', '-n', '0');
  const json = await agent('server', 'logs', '-n', '1', '--json');

  expect(two).toEqual({ code: 0, out: 'last red\nhalf\n', err: '' });
  expect(usual.out.trim().split('\n')).toHaveLength(100);
  expect(all.out.trim().split('\n').slice(0, -2)).toEqual(many);
  expect(none.out).toBe('');
  expect(json.out).toBe('{"line":"half"}\n');
});

test.each([
  [['logs', '-n', '-1'], 2, '--lines needs a whole number from 0; -1 is none'],
  [['logs', '-n', '1.5'], 2, '--lines needs a whole number from 0'],
  [['logs'], 6, 'no server has written a log'],
  [['status', '-f'], 2, 'server status does not take --follow; it belongs to server logs'],
  [['stop', '-n', '3'], 2, 'server stop does not take --lines'],
])('agent server %j is refused', async (words, code, message) => {
  const { agent } = openProject();

  expect(await agent('server', ...words)).toMatchObject({
    code,
    err: expect.stringContaining(message),
  });
});

test('a log that is followed goes on with the file of the next server', async () => {
  const { start, log } = withLog(['one', 'two']);
  const child = start('agent', ['server', 'logs', '-f', '-n', '1']);
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  const shows = (text: string) => vi.waitFor(() => expect(out).toBe(text));

  await shows('two\n');
  appendFileSync(log, 'three\nfo');
  await shows('two\nthree\n');
  appendFileSync(log, 'ur\n');
  renameSync(log, `${log}.1`);
  writeFileSync(log, 'five\n');
  await shows('two\nthree\nfour\nfive\n');
  child.kill();
});
