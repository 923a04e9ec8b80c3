import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { NetworkAccess } from '../../../src/actors/network/access.ts';
import { createEgresses } from '../../../src/actors/network/egress.ts';
import type { Endpoint } from '../../../src/actors/network/proxy.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { runSandboxed } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });

const startHost = async (text: string): Promise<number> => {
  const server = createHttpServer((_request, response) => response.end(text));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

const openEgresses = () => {
  const seen: string[] = [];
  const egresses = createEgresses(
    ({ host, port, allowed }) => void seen.push(`${host}:${port} ${allowed}`),
  );
  onTestFinished(egresses.close);
  const run = async (
    script: string,
    access: NetworkAccess,
    always: readonly Endpoint[] = [],
    user = 'commands',
  ): Promise<string> => {
    const result = await runSandboxed(sandbox, {
      argv: ['/bin/sh', '-c', script],
      root: temporaryFolder(),
      readable: [],
      env: childEnvironment(process.env),
      network: egresses.of(user, access, always),
      readOnly: true,
      timeoutMs: 30_000,
      signal: new AbortController().signal,
      headBytes: 8_000,
      tailBytes: 8_000,
    });
    if ('refusal' in result) throw new Error(result.refusal);
    // Node 22 warns that it uses a proxy.
    return result.output.replaceAll(/^\((?:node:\d+\) |Use `node --trace-).*\n/gm, '').trim();
  };
  return { run, egresses, seen };
};

/** Asks a URL through the proxy that a variable names, as programs do. */
const throughProxy = (url: string, variable = 'http_proxy'): string =>
  `node -e '
    const { hostname, port } = new URL(process.env.${variable});
    require("node:http").get({ hostname, port, path: "${url}", agent: false }, (answer) => {
      answer.setEncoding("utf8").on("data", (text) => console.log(answer.statusCode, text.trim()));
    }).on("error", (error) => console.log(error.code));
  '`;
const directly = (host: string, port: number): string =>
  `node -e 'require("node:net").connect(${port}, "${host}").on("connect", () => { console.log("connected"); process.exit(); }).on("error", (error) => console.log(error.code))'`;

testUnless(noSandbox)('a command reaches a listed host through the proxy alone', async () => {
  const port = await startHost('hello');
  const { run, seen } = openEgresses();
  const url = `http://127.0.0.1:${port}/`;

  const listed = await run(
    `${throughProxy(url)}; ${throughProxy(url, 'ALL_PROXY')}; ${directly('127.0.0.1', port)}; ${directly('1.1.1.1', 443)}`,
    ['127.0.0.1'],
  );
  const other = await run(throughProxy(url), ['packages.example']);
  const names = await run('env | grep -i proxy | sort', ['packages.example']);

  expect(listed.split('\n')).toEqual(['200 hello', '200 hello', 'ECONNREFUSED', 'ENETUNREACH']);
  expect(other).toMatch(/^403 agent-task-server: 127.0.0.1 is not in the list of hosts/);
  expect(seen).toEqual([`127.0.0.1:${port} true`, `127.0.0.1:${port} false`]);
  const lines = names.split('\n').map((line) => line.replace(/127.0.0.1:\d+$/, 'proxy'));
  expect(lines).toEqual(
    [
      ...['ALL_PROXY', 'HTTPS_PROXY', 'HTTP_PROXY', 'all_proxy', 'https_proxy', 'http_proxy'].map(
        (name) => `${name}=http://proxy`,
      ),
      ...['NO_PROXY', 'no_proxy'].map((name) => `${name}=localhost,127.0.0.1,::1`),
      'NODE_USE_ENV_PROXY=1',
    ].sort(),
  );
});

testUnless(noSandbox)(
  'what is always reachable on this machine is at its own port inside',
  async () => {
    const [ours, other] = [await startHost('ours'), await startHost('other')];
    const { run } = openEgresses();
    const always = [{ host: '127.0.0.1', port: ours }];
    const get = (port: number) =>
      `node -e 'require("node:http").get("http://127.0.0.1:${port}/", (answer) => answer.pipe(process.stdout)).on("error", (error) => console.log(error.code))'; echo`;

    const output = await run(
      `${get(ours)}; ${get(other)}; ${throughProxy(`http://127.0.0.1:${ours}/`)}`,
      ['*'],
      always,
    );

    expect(output.split('\n').filter((line) => line !== '')).toEqual([
      'ours',
      'ECONNREFUSED',
      '200 ours',
    ]);
  },
);

testUnless(noSandbox)(
  'commands share the loopback of their list; other users have another',
  async () => {
    const { run } = openEgresses();
    const interfaces = 'readlink /proc/self/ns/net';

    const first = await run(interfaces, ['a.example']);
    const again = await run(interfaces, ['a.example']);
    const server = await run(interfaces, ['a.example'], [], 'server x');

    expect(again).toBe(first);
    expect(server).not.toBe(first);
  },
);

testUnless(noSandbox)(
  'a namespace ends with the attempt, and leaves no process and no socket',
  async () => {
    const port = await startHost('hello');
    const { run, egresses } = openEgresses();
    const script = `echo "$http_proxy"; ${throughProxy(`http://127.0.0.1:${port}/`)}`;
    const network = egresses.of('commands', ['127.0.0.1']);
    await run(script, ['127.0.0.1']);

    egresses.close();
    const after = egresses.of('commands', ['127.0.0.1']);

    expect(after).not.toBe(network);
    expect(await run(script, ['127.0.0.1'])).toContain('200 hello');
  },
);

test('an empty list reaches nothing, and boolean settings stay what they are', () => {
  const { egresses } = openEgresses();

  expect([egresses.of('x', []), egresses.of('x', true), egresses.of('x', false)]).toEqual([
    false,
    true,
    false,
  ]);
});

testUnless(noSandbox)(
  'a port that the mirror needs may be one that only root may take',
  async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { run } = openEgresses();

    const output = await run(directly('127.0.0.1', 81), ['*'], [{ host: '127.0.0.1', port: 81 }]);

    expect(output).toBe('connected');
  },
);
