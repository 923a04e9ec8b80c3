import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openProject, plain } from '../../support/cli.ts';

test('a server that takes long to start is not said to have ended', {
  tags: ['slow'],
  timeout: 120_000,
}, async () => {
  const project = openProject(undefined, { ownServer: true });
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const url = `postgres://a@127.0.0.1:${port}/d?connect_timeout=90&sslmode=disable`;
  writeFileSync(project.configFile, JSON.stringify({ ...plain, store: { url } }));

  const { code, err } = await project.agent('server', 'start');

  const [, pid] = /the server \(pid (\d+)\) is still starting after 20 s/.exec(err) ?? [];
  expect([code, err]).toEqual([
    expect.any(Number),
    expect.stringContaining('agent server logs -f'),
  ]);
  process.kill(Number(pid), 'SIGKILL');
});
