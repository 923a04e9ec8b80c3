// A command in the sandbox beside the same command without it: in a worktree of its own, and in the
// user's own folder with 5,000 files in 500 folders, whose record is on disk before each command.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEgresses } from '../build/actors/network/egress.js';
import { createProxy } from '../build/actors/network/proxy.js';
import { childEnvironment, runCommand } from '../build/actors/process/run-command.js';
import { createBubblewrap } from '../build/actors/sandbox/bubblewrap.js';
import { createNoSandbox, runSandboxed } from '../build/actors/sandbox/run-sandboxed.js';
import { createSharedFolders } from '../build/actors/sandbox/shared-folder.js';
import { median, report, timed } from './lib.mjs';

const runs = Number(process.env.RUNS ?? 40);
const state = mkdtempSync(join(tmpdir(), 'agent-bench-state-'));
const folders = createSharedFolders({
  quarantine: join(state, 'quarantine'),
  records: join(state, 'commands'),
});
const sandbox = createBubblewrap({ readPaths: [], network: false, folders });
const { ok, detail } = sandbox.check();
if (!ok) {
  console.log(`a command in the sandbox: not measured, ${detail}`);
  process.exit();
}
const root = mkdtempSync(join(tmpdir(), 'agent-bench-sandbox-'));
for (let folder = 0; folder < 500; folder += 1) {
  const path = join(root, `package-${folder % 25}`, `folder-${folder}`);
  mkdirSync(path, { recursive: true });
  for (let file = 0; file < 10; file += 1) writeFileSync(join(path, `file-${file}.ts`), '');
}
for (const name of ['.git', '.beads', '.github', 'package-1/.vscode']) mkdirSync(join(root, name));
const own = mkdtempSync(join(tmpdir(), 'agent-bench-sandbox-'));
mkdirSync(join(own, '.git'));
mkdirSync(join(state, 'git'));
const git = { dir: join(state, 'git'), at: join(own, '.git') };

const run = (given, where) =>
  runSandboxed(given, {
    ...where,
    argv: ['/bin/sh', '-c', 'true'],
    readable: [],
    env: childEnvironment(process.env),
    network: false,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    headBytes: 100,
    tailBytes: 100,
  });
const bare = () =>
  runCommand({
    argv: ['/usr/bin/bwrap', '--ro-bind', '/', '/', '/bin/sh', '-c', 'true'],
    cwd: '/',
    env: {},
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    headBytes: 100,
    tailBytes: 100,
  });
const ways = {
  free: () => run(createNoSandbox(), { root: own }),
  bare,
  own: () => run(sandbox, { root: own, git }),
  shared: () => run(sandbox, { root }),
};
// In turns, so that what else the machine does counts for each alike.
const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let n = 0; n < runs; n += 1)
  for (const [name, way] of Object.entries(ways)) times[name].push(await timed(way));
for (const folder of [root, own, state]) rmSync(folder, { recursive: true });

const free = median(times.free);
const compare = (title, name, goalMs) => {
  const held = median(times[name]);
  report(`a command in ${title} / without a sandbox (p50)`, {
    ours: held,
    limit: free,
    ratio: held / free,
  });
  if (goalMs === undefined) return;
  const more = held - free;
  report(`  what it costs more, of ${goalMs} ms`, {
    ours: more,
    limit: goalMs,
    ratio: more / goalMs,
    goal: 1,
  });
};
compare('a bare bwrap with one bind', 'bare');
compare('its own worktree', 'own', 12);
compare("the user's own folder", 'shared', 25);

/** A command with a list of hosts beside one without network, and a connection through the proxy. */
const measureEgress = async () => {
  const host = createServer((_request, response) => response.end('x')).listen(0, '127.0.0.1');
  await once(host, 'listening');
  const { port } = host.address();
  const egresses = createEgresses(() => {});
  const network = egresses.of('bench', ['127.0.0.1']);
  const folder = mkdtempSync(join(tmpdir(), 'agent-bench-network-'));
  const inFolder = (wanted, argv = ['/bin/sh', '-c', 'true']) =>
    runSandboxed(sandbox, {
      ...{ argv, root: folder, readable: [], env: childEnvironment(process.env), network: wanted },
      ...{ readOnly: true, timeoutMs: 60_000, signal: new AbortController().signal },
      ...{ headBytes: 4_000, tailBytes: 4_000 },
    });
  const opened = await timed(() => inFolder(network));
  const [closed, listed] = [[], []];
  for (let n = 0; n < runs; n += 1) {
    closed.push(await timed(() => inFolder(false)));
    listed.push(await timed(() => inFolder(network)));
  }
  report('a command with a list of hosts / without network (p50)', {
    ours: median(listed),
    limit: median(closed),
    ratio: median(listed) / median(closed),
  });
  console.log(`  the first command of an attempt with a list: ${opened.toFixed(0)} ms`);

  const proxy = createProxy({ hosts: ['127.0.0.1'], always: [], record: () => {} });
  const listening = createTcpServer().listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const proxyPort = listening.address().port;
  await proxy.listenOn(listening);
  const firstByte = async (to, request) => {
    const socket = connect(to, '127.0.0.1');
    socket.write(request);
    await once(socket, 'data');
    socket.destroy();
  };
  const [direct, through] = [[], []];
  for (let n = 0; n < runs * 5; n += 1) {
    direct.push(await timed(() => firstByte(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')));
    const target = `127.0.0.1:${port}`;
    through.push(
      await timed(() => firstByte(proxyPort, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)),
    );
  }
  const proxyMs = Math.max(0, median(through) - median(direct));
  report('  what the proxy costs a connection, of 5 ms', {
    ours: proxyMs,
    limit: 5,
    ratio: proxyMs / 5,
    goal: 1,
  });
  proxy.close();
  egresses.close();
  host.close();
  rmSync(folder, { recursive: true });
};
await measureEgress();
