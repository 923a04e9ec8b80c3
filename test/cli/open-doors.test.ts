import { chmodSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test, vi } from 'vitest';
import { remoteCredentials, remoteSecrets } from '../../src/cli/config/remote-credentials.ts';
import { createRedactor } from '../../src/cli/server/secrets/redact.ts';
import { createTokenSource, ownTokenFile } from '../../src/cli/server/secrets/token-file.ts';
import { openProject } from '../support/cli.ts';
import { isLong } from '../support/long.ts';
import { temporaryFolder } from '../support/temporary.ts';

type Project = ReturnType<typeof openProject>;

const serve = async (project: Project, through: readonly string[] = []): Promise<string> => {
  const child = project.start('agent-server', ['--server'], {}, through);
  const said: Buffer[] = [];
  child.stderr?.on('data', (chunk) => said.push(chunk));
  child.stdout?.resume();
  await vi.waitUntil(() => project.serverFile() !== null, { interval: 20 });
  return project.serverFile().url;
};

const idleSocket = (url: string): Socket => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
};

test('300 idle sockets keep nobody out of a server with a limit of 256 files', {
  tags: ['slow'],
}, async () => {
  const project = openProject();
  const url = await serve(project, ['/bin/sh', '-c', 'ulimit -n 256; exec "$@"', 'sh']);

  const sockets = Array.from({ length: 300 }, () => idleSocket(url));
  await Promise.all(
    sockets.map(
      (socket) => new Promise((resolve) => socket.once('connect', resolve).once('close', resolve)),
    ),
  );
  const answers = [];
  for (let asked = 0; asked < 100; asked += 1) answers.push((await fetch(`${url}/health`)).status);

  expect(answers).toEqual(Array.from({ length: 100 }, () => 200));
});

/** Empty for a descriptor that was closed meanwhile. */
const targetOf = (link: string): string => {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
};

/** The listening sockets of a process, as the kernel names them: `0100007F:1F90`. */
const listeningOf = (pid: number): readonly string[] => {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((file) => {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(targetOf(`/proc/${pid}/fd/${file}`)) ?? [];
      return inode ?? [];
    }),
  );
  return ['tcp', 'tcp6'].flatMap((protocol) =>
    readFileSync(`/proc/${pid}/net/${protocol}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((columns) => columns[3] === '0A' && own.has(columns[9] ?? ''))
      .map((columns) => columns[1] ?? ''),
  );
};

test('the server listens on 127.0.0.1 and ::1, and on no other address', {
  tags: ['slow'],
}, async () => {
  const project = openProject();
  const url = await serve(project);
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  const loopback = [`0100007F:${port}`, `00000000000000000000000001000000:${port}`];

  const listening = listeningOf(project.serverFile().pid);

  expect(listening).toContain(loopback[0]);
  expect(listening.filter((address) => !loopback.includes(address))).toEqual([]);
});

const isTried = isLong || process.env['AGENT_TEST_SECURITY'] !== undefined;

test('endless requests are closed, and delay nobody', async (context) => {
  if (!isTried) return context.skip('npm run test:security and test:long wait that long');
  const url = await serve(openProject());
  const began = performance.now();
  const start = 'POST /a2a/execute HTTP/1.1\r\nHost: localhost\r\n';
  const slow = (head: string, unit: string) => {
    const socket = idleSocket(url);
    socket.write(head);
    const drip = setInterval(() => socket.write(unit), 500);
    socket.resume();
    return new Promise<number>((resolve) =>
      socket.once('close', () => {
        clearInterval(drip);
        resolve((performance.now() - began) / 1_000);
      }),
    );
  };
  const silent = Array.from({ length: 200 }, () => slow('', ''));
  const ends = Promise.all([
    Promise.all(silent).then((seconds) => Math.max(...seconds)),
    slow(start, 'X-Slow: 1\r\n'),
    slow(`${start}Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n`, ' '),
  ]);
  const answers = [];
  for (let asked = 0; asked < 50; asked += 1) answers.push((await fetch(`${url}/health`)).status);

  expect(new Set(answers)).toEqual(new Set([200]));
  const [silence, headers, body] = await ends;
  expect(silence).toBeLessThan(15);
  expect(headers).toBeLessThan(15);
  expect(body).toBeLessThan(35);
});

test('a token file that is missing or readable by others shows in /health, and the server keeps its token', {
  tags: ['slow'],
}, async () => {
  const project = openProject();
  const url = await serve(project);
  const file = join(project.stateDir, 'token');
  const token = readFileSync(file, 'utf8').trim();
  const ask = async () => {
    const health = await fetch(`${url}/health`);
    const metrics = await fetch(`${url}/metrics`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { status, checks } = (await health.json()) as {
      status: string;
      checks: { token: unknown };
    };
    return { codes: [health.status, metrics.status], status, token: checks.token };
  };

  const well = await ask();
  chmodSync(file, 0o644);
  const open = await ask();
  rmSync(file);
  const gone = await ask();
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const mended = await ask();

  expect(well).toMatchObject({ codes: [200, 200], status: 'healthy', token: { status: 'ok' } });
  expect(open).toMatchObject({
    codes: [200, 200],
    status: 'degraded',
    token: { status: 'failing' },
  });
  expect(open.token).toMatchObject({ detail: expect.stringContaining('is readable by others') });
  expect(gone.token).toMatchObject({ detail: expect.stringContaining('is missing') });
  expect(gone.codes).toEqual([200, 200]);
  expect(mended).toEqual(well);
});

test('both the rotated and the old token are removed from texts', () => {
  const file = join(temporaryFolder(), 'token');
  const tokens = createTokenSource(ownTokenFile(file));
  const redact = createRedactor(tokens.all);
  const old = tokens.current();
  const fresh = 'f'.repeat(43);

  rmSync(file);
  writeFileSync(file, `${fresh}\n`, { mode: 0o600 });

  expect(redact(`old ${old} new ${fresh}`)).toBe('old [secret] new [secret]');
  expect(tokens.current()).toBe(fresh);
});

test.each([
  ['--allow-remote'],
  ['--allow-remote', '--host', '0.0.0.0'],
  ['--allow-remote', '--behind-tls-proxy'],
  ['--tls-cert', 'cert.pem'],
])(
  'agent-server --server %s %s %s is refused with the reason and another way',
  async (...flags) => {
    const project = openProject();

    const { code, err } = await project.server(
      '--server',
      ...flags.filter((flag) => flag !== undefined),
    );

    expect(code).toBe(78);
    expect(err).toContain('has no TLS');
    expect(err).toContain('ssh -L');
    expect(project.serverFile()).toBeNull();
  },
);

const withRemote = async (url: string) => {
  const root = temporaryFolder();
  await execa('git', ['init', '-q', root]);
  await execa('git', ['-C', root, 'remote', 'add', 'origin', url]);
  return root;
};

test("a credential in a remote's address or header is found, and removed from texts", async () => {
  const root = await withRemote('https://bob:tok%40en-12345@example.org/x.git');
  const redact = createRedactor(remoteSecrets(root));
  const header = 'AUTHORIZATION: basic c2VjcmV0LWhlYWRlcg==';
  const before = redact('c2VjcmV0LWhlYWRlcg==');
  await execa('git', ['-C', root, 'config', 'http.https://example.org/.extraheader', header]);

  expect(remoteCredentials(root).map(({ host }) => host)).toEqual([
    'example.org',
    'http.extraheader',
  ]);
  expect(redact('fatal: https://bob:tok%40en-12345@example.org/x.git')).toBe(
    'fatal: https://bob:[secret]@example.org/x.git',
  );
  expect(redact('tok@en-12345')).toBe('[secret]');
  expect([before, redact('c2VjcmV0LWhlYWRlcg==')]).toEqual(['c2VjcmV0LWhlYWRlcg==', '[secret]']);
});

test.each([
  ['a user name', 'https://bob@example.org/x.git'],
  ['ssh', 'ssh://git@example.org/x.git'],
  ['scp form', 'git@example.org:x.git'],
])('an address with %s alone holds no credential', async (_, url) => {
  expect(remoteCredentials(await withRemote(url))).toEqual([]);
});

test("doctor warns of a credential in a remote's address, and does not show it", async () => {
  const project = openProject();
  rmSync(join(project.root, '.git'), { recursive: true });
  await execa('git', ['init', '-q', project.root]);
  await execa('git', [
    '-C',
    project.root,
    'remote',
    'add',
    'origin',
    'https://bob:hunter2hunter2@example.org/x.git',
  ]);

  const { out, err } = await project.agent('doctor');

  expect(out).toContain('.git/config contains a credential for example.org');
  expect(`${out}${err}`).not.toContain('hunter2');
});
