import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { connectMcp } from '../../../src/actors/mcp/connection.ts';
import type { StdioLaunch } from '../../../src/actors/mcp/port.ts';
import { type McpSurroundings, placeFor } from '../../../src/actors/mcp/transports.ts';
import type { NetworkAccess } from '../../../src/actors/network/access.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { framesOf, resultsOf, stdioServer } from '../../support/mcp.ts';
import { noPython, noSandbox, testUnless } from '../../support/needs.ts';
import { bash, finish, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const toy = join(import.meta.dirname, '..', '..', 'support', 'mcp', 'toy-server.mjs');
const sandbox = createBubblewrap({ readPaths: [dirname(toy)], network: false });
const { signal } = new AbortController();

const surroundings = (root: string, more: Partial<McpSurroundings> = {}): McpSurroundings => ({
  root,
  readable: [],
  git: null,
  sandbox: createNoSandbox(),
  networkOf: () => false,
  usersFiles: null,
  env: childEnvironment(process.env),
  variables: {},
  ...more,
});

const lookAround = async (
  argv: StdioLaunch['argv'],
  around: McpSurroundings,
): Promise<Record<string, unknown>> => {
  const server = stdioServer('toy', [], { argv, readPaths: [dirname(toy)] });
  const place = await placeFor(server, around);
  const connection = await connectMcp({
    ...{ server: 'toy', version: '0', startMs: 20_000, signal, place },
  });
  onTestFinished(() => connection.close());
  const { text } = await connection.call('look', {}, 20_000, signal);
  return JSON.parse(text.slice(text.indexOf('{')));
};

test.for([
  ['in the sandbox', sandbox],
  ['as the user', createNoSandbox()],
] as const)(
  'a server starts in an empty folder of its own, and gets the workspace as a root and a variable: %s',
  async ([, held], { skip }) => {
    const { ok, detail } = held.check();
    skip(!ok, detail);
    const root = temporaryFolder();
    writeFileSync(join(root, 'a.txt'), '');

    const seen = await lookAround([process.execPath, toy], surroundings(root, { sandbox: held }));

    expect(seen).toMatchObject({
      files: [],
      workspace: root,
      roots: [{ uri: pathToFileURL(root).href }],
    });
    expect(seen['cwd']).not.toBe(root);
  },
);

test.each<[string, StdioLaunch['argv']]>([
  ['a shell', ['/bin/sh', '-c', 'exec node planted.mjs']],
  ['node -r', [process.execPath, '-r', './planted.mjs', toy]],
])(
  'a file that an agent left in the workspace is not loaded by a server of the user: %s',
  async (_, argv) => {
    const root = temporaryFolder();
    copyFileSync(toy, join(root, 'planted.mjs'));
    const users = temporaryFolder();

    const looked = lookAround(argv, surroundings(root, { usersFiles: async () => users }));

    await expect(looked).rejects.toThrow(/it ended with exit code/);
  },
);

testUnless(noPython)(
  'a module that an agent left in the workspace is not loaded by a server of the user',
  async () => {
    const root = temporaryFolder();
    writeFileSync(join(root, 'planted.py'), '');
    const users = temporaryFolder();

    const looked = lookAround(
      ['python3', '-m', 'planted'],
      surroundings(root, { usersFiles: async () => users }),
    );

    await expect(looked).rejects.toThrow(/it ended with exit code/);
    await expect(looked).rejects.toThrow(
      'it starts in an empty folder, not in the project, so planted.py there is not found',
    );
  },
);

test('a relative path is the file of the commit of the user, which the agent did not change', async () => {
  const root = temporaryFolder();
  const users = temporaryFolder();
  for (const folder of [root, users]) mkdirSync(join(folder, 'tools'));
  copyFileSync(toy, join(users, 'tools', 'toy.mjs'));
  writeFileSync(join(root, 'tools', 'toy.mjs'), 'process.exit(9)');
  const around = surroundings(root, { usersFiles: async () => users });

  const seen = await lookAround(
    [process.execPath, 'tools/toy.mjs', '--file=./tools', 'stdio'],
    around,
  );

  expect(seen['program']).toEqual([
    ...[join(users, 'tools', 'toy.mjs'), `--file=${join(users, 'tools')}`, 'stdio'],
  ]);
});

test('a relative path is refused where agents change the folder that it is in', async () => {
  const root = temporaryFolder();
  copyFileSync(toy, join(root, 'toy.mjs'));

  await expect(lookAround([process.execPath, 'toy.mjs'], surroundings(root))).rejects.toThrow(
    'toy.mjs is in a folder that agents change',
  );
});

test('an argument may name the workspace', async () => {
  const root = temporaryFolder();

  const seen = await lookAround(
    [process.execPath, toy, `\${AGENT_WORKSPACE}/src`],
    surroundings(root),
  );

  expect(seen['program']).toEqual([toy, `${root}/src`]);
});

testUnless(noSandbox)('in an attempt, a file of the commit is read only', async () => {
  const root = makeRepository();
  copyFileSync(toy, join(root, 'toy.mjs'));
  gitIn(root, 'add', 'toy.mjs');
  commitIn(root, 'b.txt', 'b');
  const look = { calls: [{ tool: 'mcp__toy__look', arguments: {} }] };
  const server = stdioServer('toy', [], { argv: [process.execPath, 'toy.mjs'], readPaths: [] });
  const running = await startSystem({
    root,
    sandbox,
    turns: [bash('echo "process.exit(9)" > toy.mjs'), look, finish()],
    role: { mcp: ['toy'] },
    options: { mcpServers: [server] },
    workspace: (project, state) =>
      worktreesOf(project, join(state, 'worktrees'), [], { sandboxed: true }),
  });
  const { task_id: id } = await running.service.create({ description: 'look' });

  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete', 'failed');

  const looked = (await resultsOf(running, id)).find(({ tool }) => tool === 'mcp__toy__look');
  const seen = JSON.parse((looked?.output ?? '').replace(/^[^{]*/, ''));
  expect(seen.program[0]).toMatch(/\/users-files\/[0-9a-f]{40}\/toy\.mjs$/);
  expect(seen.files).toEqual([]);
});

const startHost = async (): Promise<number> => {
  const server = createServer((_request, response) => response.end('reached'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

const list = ['127.0.0.1'];
const reached = (access: NetworkAccess): string =>
  access === true ? 'whole' : access === false ? 'none' : 'listed';

testUnless(noSandbox).each<readonly [NetworkAccess, NetworkAccess, NetworkAccess | null]>([
  [false, false, false],
  [false, false, true],
  [false, true, false],
  [false, true, true],
  [true, false, false],
  [true, false, true],
  [true, true, false],
  [true, true, true],
  [false, true, null],
  [false, list, null],
  [list, false, null],
  [list, true, list],
  [true, list, false],
])(
  `mcp.servers.toy.network %j, sandbox.network %j, roles.engineer.network %j: an attempt reaches what the most specific one says`,
  async (server, all, role) => {
    const port = await startHost();
    const toyServer = stdioServer('toy', [toy], {
      network: server,
      env: { TOY_PORT: String(port) },
      readPaths: [dirname(toy)],
    });
    const running = await startSystem({
      sandbox,
      turns: [
        { calls: [{ tool: 'mcp__toy__look', arguments: {} }] },
        bash(`node ${toy} reach ${port}`),
        finish(),
      ],
      role: { mcp: ['toy'], network: role },
      options: { mcpServers: [toyServer], network: all },
    });
    const { task_id: id } = await running.service.create({ description: 'look' });

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await untilStatus(running, id, 'complete', 'failed');

    const [looked, command] = await resultsOf(running, id);
    expect(JSON.parse((looked?.output ?? '').replace(/^[^{]*/, '')).reaches).toBe(reached(server));
    // Node 22 warns first that it uses a proxy.
    const said = command?.output.split('\n').find((line) => !line.startsWith('('));
    expect(said).toBe(reached(role ?? all));
    const frames = (await framesOf(running, id)).filter(({ type }) => type === 'network');
    const usesProxy = [server, role ?? all].some((access) => typeof access === 'object');
    expect(frames.map(({ data }) => data)).toEqual(
      usesProxy ? [{ host: '127.0.0.1', port, allowed: true }] : [],
    );
  },
);
