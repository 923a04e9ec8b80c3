import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

test('the status of a server takes a few lines, with its log, which remains after the stop', async () => {
  const { agent, serverFile, stateDir, root, stopServer } = openProject();
  const never = await agent('server', 'status');
  await agent('server', 'start');
  const { url, pid, version, started_at } = serverFile();

  const shown = await agent('server', 'status');
  const json = await agent('server', 'status', '--json');
  await stopServer();
  const after = await agent('server', 'status');

  const log = `${stateDir}/server.log`;
  expect(never).toMatchObject({ code: 6, out: `no server runs for ${root}\n` });
  expect(shown.code).toBe(0);
  expect(shown.out.split('\n').map((line) => line.replace(/: .*/, ''))).toEqual([
    `${url} is healthy`,
    `  project    ${root}`,
    `  pid        ${pid}`,
    `  since      ${started_at.replace(/: .*/, '')}`,
    `  version    ${version}`,
    '  store      ok',
    '  tracker    ok',
    '  supervisor ok',
    '  merges     ok',
    '  token      ok',
    '  configuration ok',
    '  model      ok',
    `  log        ${log}`,
    '',
  ]);
  expect(JSON.parse(json.out)).toMatchObject({
    running: true,
    url,
    pid,
    log,
    health: { status: 'healthy' },
  });
  expect(after).toMatchObject({
    code: 6,
    out: `no server runs for ${root} (log of the last one: ${log})\n`,
  });
});
