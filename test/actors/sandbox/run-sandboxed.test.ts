import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rename } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test, vi } from 'vitest';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import type { OwnGit, Sandbox } from '../../../src/actors/sandbox/port.ts';
import { createNoSandbox, runSandboxed } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { refusedCallNumber } from '../../../src/actors/sandbox/seccomp.ts';
import { runSandboxProbes } from '../../../src/actors/sandbox/self-test.ts';
import { gitIdentity } from '../../../src/actors/workspace/git/signing.ts';
import { describeUnless, noSandbox } from '../../support/needs.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** The network namespace of this process, and so of the test's server. */
const ourNetwork = noSandbox === null ? readlinkSync('/proc/self/ns/net') : '';

/** A repository with settings, hooks and files of tools, as an agent finds it. */
const makeWorkspace = () => {
  const root = temporaryFolder();
  for (const folder of ['.git/hooks', '.git/info', '.beads', '.vscode', '.github/workflows', 'src'])
    mkdirSync(join(root, folder), { recursive: true });
  for (const file of [
    '.git/config',
    '.git/HEAD',
    '.beads/issues.jsonl',
    '.vscode/tasks.json',
    'src/a.txt',
  ])
    writeFileSync(join(root, file), 'as it was\n');
  return root;
};

const runIn = async (
  root: string,
  script: string,
  sandbox: Sandbox = createBubblewrap({ readPaths: [], network: false }),
  more: Readonly<Record<string, string>> = {},
  git?: OwnGit,
  network = false,
) => {
  const result = await runSandboxed(sandbox, {
    argv: ['/bin/sh', '-c', script],
    root,
    readable: [],
    ...(git === undefined ? {} : { git }),
    env: { ...childEnvironment({ ...process.env, OPENAI_API_KEY: 'sk-canary-canary' }), ...more },
    timeoutMs: 15_000,
    signal: new AbortController().signal,
    network,
    headBytes: 8_192,
    tailBytes: 8_192,
    namedOutputs: true,
  });
  if ('refusal' in result) throw new Error(result.refusal);
  return result;
};

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
};

const commandLines = (): readonly string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => textOf(`/proc/${pid}/cmdline`));

describeUnless(noSandbox)('a command in the sandbox', () => {
  test('can open its outputs by name', async () => {
    const { exitCode, output } = await runIn(
      makeWorkspace(),
      'echo one > /dev/stdout; echo two > /dev/stderr',
    );

    expect([exitCode, output.split('\n').sort()]).toEqual([0, ['', 'one', 'two']]);
  });

  test('shows no value of its environment in the command line of any process', async () => {
    const secret = 'sk-canary-of-the-user';
    const enough = new AbortController();
    let lines: readonly string[] = [];

    await runSandboxed(createBubblewrap({ readPaths: [], network: false }), {
      argv: ['/bin/sh', '-c', 'echo "$KEY"; sleep 300'],
      root: makeWorkspace(),
      readable: [],
      env: { ...childEnvironment(process.env), KEY: secret },
      network: false,
      timeoutMs: 15_000,
      signal: enough.signal,
      headBytes: 100,
      tailBytes: 100,
      onOutput: (text) => {
        if (text.includes(secret)) lines = commandLines();
        enough.abort();
      },
    });

    expect(lines.some((line) => line.includes('bwrap'))).toBe(true);
    expect(lines.filter((line) => line.includes(secret))).toEqual([]);
  });

  test('works in the workspace with the programs of the system', async () => {
    const root = makeWorkspace();

    const result = await runIn(
      root,
      'pwd; cat src/a.txt; echo new > src/b.txt; node -e "console.log(1+1)"; exit 7',
    );

    expect(result).toMatchObject({ exitCode: 7, output: `${root}\nas it was\n2\n` });
    expect(readFileSync(join(root, 'src/b.txt'), 'utf8')).toBe('new\n');
  });

  test('cannot break out in any known way', { tags: ['slow'] }, async () => {
    process.env['AGENT_PROBE'] = 'probe-canary';
    onTestFinished(() => void delete process.env['AGENT_PROBE']);

    const probes = await runSandboxProbes(createBubblewrap({ readPaths: [], network: false }));

    expect(probes.filter(({ held }) => !held)).toEqual([]);
    expect(probes.length).toBeGreaterThanOrEqual(30);
  });

  test.each([
    ['ptrace', '0, 0, 0, 0'],
    ['keyctl', '0, -3, 1'],
    ['unshare', '0'],
    ['kcmp', '$$+0, $$+0, 0, 0, 1'],
    ['modify_ldt', '0, 0, 0'],
    ['pidfd_getfd', 'syscall(434, $$+0, 0), 0, 0'],
  ])('is refused the system call %s, which the kernel alone would allow', async (name, args) => {
    const call = `perl -e 'my $r = syscall(${refusedCallNumber(name)}, ${args}); print $r < 0 ? "refused $!{EPERM}" : "done"'`;

    expect((await runIn(makeWorkspace(), call, createNoSandbox())).output).toBe('done');
    expect((await runIn(makeWorkspace(), call)).output).toBe('refused 1');
  });

  const ownGit = (root: string): OwnGit => ({ dir: temporaryFolder(), at: join(root, '.git') });
  const listening = async (path: string): Promise<string> => {
    const server = createNetServer((socket) => socket.end('reached'));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
    return path;
  };
  /** Prints what the server says, or the code of the error. */
  const connectTo = (path: string): string =>
    `node -e 'require("net").connect("${path}").on("error", (e) => console.log(e.code)).pipe(process.stdout)'`;
  const listenThere =
    'node -e \'require("net").createServer().on("error", (e) => console.log(e.code)).listen("src/x.sock", () => { console.log("listening"); process.exit() })\'';
  /** Sends to a datagram socket from one of a connected pair. */
  const sendFromPair = (path: string): string =>
    `perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0) or die "no pair\\n"; print send($a, "x", 0, pack_sockaddr_un("${path}")) ? "sent" : "not sent $!"'`;

  test.each([
    ['its own folder, without the network', 'listening', false, true],
    ['its own folder, with the network', 'EPERM', true, true],
    ['the folder of the user', 'EPERM', false, false],
  ])('in %s a socket of the file system says %s', async (_, says, network, isOwn) => {
    const root = makeWorkspace();
    const sandbox = createBubblewrap({ readPaths: [], network });

    const { output } = await runIn(
      root,
      listenThere,
      sandbox,
      {},
      isOwn ? ownGit(root) : undefined,
      network,
    );

    expect(output.trim()).toBe(says);
  });

  test('reaches no socket of a program in the folder of the user, also one that appears later', async () => {
    const root = makeWorkspace();
    const before = await listening(join(root, 'before.sock'));
    const later = join(root, 'later.sock');
    const until = `while ! test -e ${later}; do sleep 0.02; done`;

    const running = runIn(root, `echo; ${connectTo(before)}; ${until}; ${connectTo(later)}`);
    await listening(later);

    expect((await running).output.trim()).toBe('EPERM\nEPERM');
  });

  test.each(['a path of the configuration', 'a folder of the programs', 'its own folder'])(
    'reaches no socket of a program in %s',
    async (where) => {
      const root = makeWorkspace();
      const other = temporaryFolder();
      const folder = where === 'its own folder' ? root : other;
      const link = join(temporaryFolder(), 'link');
      symlinkSync(folder, link);
      const path = await listening(join(link, 'x.sock'));
      const readPaths = where === 'a path of the configuration' ? [other] : [];
      const sandbox = createBubblewrap({ readPaths, network: false });
      const more: Record<string, string> =
        where === 'a folder of the programs' ? { PATH: `${process.env['PATH']}:${other}` } : {};
      const command = connectTo(join(folder, 'x.sock'));

      expect((await runIn(root, command, createNoSandbox())).output).toBe('reached');
      expect((await runIn(root, command, sandbox, more, ownGit(root))).output.trim()).toBe('EPERM');
      expect(existsSync(path)).toBe(true);
    },
  );

  test.each([
    ['is refused', false, 'no pair\n'],
    ['works', true, 'not sent No such file or directory'],
  ])(
    'a pair of datagram sockets %s, as other sockets of the file system there',
    async (_, isOwn, says) => {
      const root = makeWorkspace();
      const git = isOwn ? ownGit(root) : undefined;
      const pairs =
        'node -e \'require("child_process").execSync("true", { stdio: "pipe" }); console.log("fine")\'';

      expect((await runIn(root, sendFromPair('src/none'), undefined, {}, git)).output).toBe(says);
      expect((await runIn(root, pairs, undefined, {}, git)).output).toBe('fine\n');
    },
  );

  test('cannot do what the two probes that need the network or the disk show', async () => {
    const root = makeWorkspace();
    const net =
      "node -e \"require('net').connect(80, '1.1.1.1').on('error', () => process.exit(9))\"";

    expect((await runIn(root, net)).exitCode).toBe(9);
    expect((await runIn(root, 'head -c 600000000 /dev/zero > /tmp/huge')).exitCode).not.toBe(0);
    expect((await runIn(root, 'env | grep canary')).exitCode).toBe(1);
  });

  const greedy = {
    'buffers of Node': `node -e 'const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))'`,
    'objects of Node': `node --max-old-space-size=8000 -e 'const a = []; for (;;) a.push(new Array(1e5).fill(0).map((_, i) => [i]))'`,
    'what is not a script': 'tail /dev/zero',
    'shared memory': 'head -c 300000000 /dev/zero > /dev/shm/x',
    'a file among devices': 'head -c 1 /dev/zero > /dev/x',
  };

  test.each(Object.entries(greedy))(
    'ends when it allocates memory without end: %s',
    { tags: ['slow'] },
    async (_, script) => {
      const sandbox = createBubblewrap({
        readPaths: [],
        network: false,
        memoryBytes: 512 * 1024 ** 2,
      });
      const before = process.memoryUsage().rss;

      const result = await runIn(makeWorkspace(), script, sandbox);

      expect(result.timedOut).toBe(false);
      expect(result.exitCode).not.toBe(0);
      expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 ** 2);
      expect((await runIn(makeWorkspace(), 'echo still here', sandbox)).output).toBe(
        'still here\n',
      );
    },
  );

  // From Node 24 on, V8 reserves 512 MB for code.
  test.each([640, 4_096])('runs Node, npm and git with %d MB', async (mb) => {
    const root = temporaryFolder();
    await execa('git', ['init', '--quiet'], { cwd: root });
    const sandbox = createBubblewrap({
      readPaths: [],
      network: false,
      memoryBytes: mb * 1024 ** 2,
    });

    const result = await runIn(
      root,
      'node -e 0 && npm --version && git status --short && echo fine',
      sandbox,
    );

    expect(result).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/^\d+\.\d+\.\d+\nfine\n$/),
    });
  });

  test('is the first process that the kernel kills when memory is short', async () => {
    expect((await runIn(makeWorkspace(), 'cat /proc/self/oom_score_adj')).output).toBe('1000\n');
  });

  test('has the configured memory limit, or none', async () => {
    const limit = (memoryBytes: number | null) =>
      createBubblewrap({ readPaths: [], network: false, memoryBytes });

    expect((await runIn(makeWorkspace(), 'ulimit -d', limit(256 * 1024 ** 2))).output).toBe(
      '262144\n',
    );
    expect((await runIn(makeWorkspace(), 'ulimit -d')).output).toBe('4194304\n');
    expect((await runIn(makeWorkspace(), 'ulimit -d', limit(null))).output).toBe('unlimited\n');
    expect(limit(null).describe()).toMatch(/^bubblewrap, network off, no memory limit/);
  });

  test('leaves no process behind, however it was started', async () => {
    const root = makeWorkspace();
    const mark = `sandbox-${process.pid}-${Math.random()}`;

    await runIn(
      root,
      `(exec -a ${mark} sleep 300) & setsid bash -c 'exec -a ${mark} sleep 300' & trap '' TERM; echo`,
    );

    expect(commandLines().filter((line) => line.startsWith(mark))).toEqual([]);
  });

  test('reads the configured paths, and reaches the network where the configuration allows it', async () => {
    const root = makeWorkspace();
    const other = temporaryFolder();
    writeFileSync(join(other, 'library'), 'shared');
    const server = createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const open = createBubblewrap({ readPaths: [other], network: false });
    const fetching = `fetch("http://127.0.0.1:${port}").then((r) => r.text()).then(console.log)`;

    const result = await runIn(
      root,
      `cat ${other}/library; node -e '${fetching}'; touch ${other}/new`,
      open,
      {},
      undefined,
      true,
    );

    expect(result.output).toMatch(/^sharedhello\n.*Read-only/);
  });

  test.each([
    [true, false],
    [false, true],
  ])('network %s of a role applies to its commands and checks alone', async (network, others) => {
    const server = createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const reach = `node -e 'fetch("http://127.0.0.1:${port}").then(() => process.exit(0), () => process.exit(9))'`;
    const turns = [
      { calls: [{ tool: 'bash', arguments: { command: `${reach}; echo $? > code` } }] },
      finish(),
    ];
    const sandbox = createBubblewrap({ readPaths: [], network: others });
    const options = { network: others };
    const running = await startSystem({ turns, sandbox, role: { network }, options });
    const { task_id: id } = await running.service.create({ description: 'a task' });

    const verify = [`${reach}; test $? = ${network ? 0 : 9}`];
    await running.service.execute({ task: id, role: 'engineer', options: { verify } });

    expect(await untilStatus(running, id, 'complete', 'failed')).toMatchObject({
      status: 'complete',
    });
    expect(readFileSync(join(running.root, 'code'), 'utf8').trim()).toBe(network ? '0' : '9');
  });

  test('a caller can close the network, and open it only where the configuration lets callers', async () => {
    const look = {
      calls: [{ tool: 'bash', arguments: { command: 'readlink /proc/self/ns/net > net' } }],
    };
    const sandbox = createBubblewrap({ readPaths: [], network: false });
    const isOpen = async (setting: object, options: object): Promise<boolean> => {
      const running = await startSystem({ turns: [look, finish()], sandbox, ...setting });
      const { task_id: id } = await running.service.create({ description: 'a task' });
      await running.service.execute({ task: id, role: 'engineer', options });
      await untilStatus(running, id, 'complete');
      return readFileSync(join(running.root, 'net'), 'utf8').trim() === ourNetwork;
    };

    expect(await isOpen({ options: { allowTaskNetwork: true } }, { network: true })).toBe(true);
    expect(await isOpen({ role: { network: true } }, {})).toBe(true);
    expect(await isOpen({ role: { network: true } }, { network: false })).toBe(false);
    await expect(isOpen({}, { network: true })).rejects.toMatchObject({
      code: 'invalid_params',
      facts: {
        fields: [
          {
            path: 'options.network',
            problem: expect.stringContaining('sandbox.allow_task_network'),
          },
        ],
      },
    });
  });

  test('a retry keeps the network of the attempt before only while that is allowed', async () => {
    const look = {
      calls: [{ tool: 'bash', arguments: { command: 'readlink /proc/self/ns/net >> net' } }],
    };
    const turns = [look, finish('no luck', 'failed')];
    const sandbox = createBubblewrap({ readPaths: [], network: false });
    const running = await startSystem({ turns, sandbox, options: { allowTaskNetwork: true } });
    const { task_id: id } = await running.service.create({ description: 'a task' });
    await running.service.execute({ task: id, role: 'engineer', options: { network: true } });
    await untilStatus(running, id, 'failed');

    running.system.reconfigure({ ...running.system.settings(), allowTaskNetwork: false });
    await running.service.retry(id, null, null, null);
    const view = await untilStatus(running, id, 'failed');

    expect(view.attempt).toBe(2);
    const [first, second] = readFileSync(join(running.root, 'net'), 'utf8').trim().split('\n');
    expect(first).toBe(ourNetwork);
    expect(second).toMatch(/^net:/);
    expect(second).not.toBe(ourNetwork);
    await expect(running.service.retry(id, null, { network: true }, null)).rejects.toMatchObject({
      code: 'invalid_params',
    });
  });

  test("commits have the user's name, although the home is invisible", async () => {
    const root = temporaryFolder();
    const home = temporaryFolder();
    writeFileSync(
      join(home, '.gitconfig'),
      '[user]\n\tname = Amy\n\temail = amy@localhost\n[url "https://token@x"]\n\tinsteadOf = y\n',
    );
    const own = { dir: join(temporaryFolder(), 'git'), at: join(root, '.git') };
    const git = (...args: string[]) =>
      execa('git', args, { cwd: root, env: { HOME: home, GIT_DIR: own.dir } });
    await git('init', '--quiet');
    await git('config', 'core.bare', 'false');
    vi.stubEnv('HOME', home);
    onTestFinished(() => void vi.unstubAllEnvs());
    const identity = gitIdentity(root);
    vi.unstubAllEnvs();

    const result = await runIn(
      root,
      'git commit --quiet --allow-empty -m one && cat ~/.gitconfig',
      undefined,
      identity,
      own,
    );
    await git('config', 'user.name', 'The Project');
    await rename(own.dir, own.at);

    expect(result.output).not.toContain('token');
    expect((await git('--git-dir', own.at, 'log', '--format=%an %ae %cn')).stdout).toBe(
      'Amy amy@localhost Amy',
    );
    vi.stubEnv('HOME', home);
    expect(gitIdentity(root)).toEqual({
      GIT_AUTHOR_EMAIL: 'amy@localhost',
      GIT_COMMITTER_EMAIL: 'amy@localhost',
    });
  });

  test('sees the settings of the system, without its private keys, and cannot change them', async () => {
    const { output } = await runIn(
      makeWorkspace(),
      'ls /etc; ls /etc/ssl/private /etc/shadow; cat /etc/passwd; echo x >> /etc/passwd',
    );

    expect(output).toMatch(/^alternatives\n[^:]*\nssl\n/);
    expect(output).toMatch(
      /cannot access '\/etc\/ssl\/private'[\s\S]*cannot access '\/etc\/shadow'/,
    );
    expect(output).toContain(readFileSync('/etc/passwd', 'utf8'));
    expect(output).toContain('/etc/passwd: Read-only file system');
  });

  test('a folder of PATH that holds the home is not shown', async () => {
    const sandbox = createBubblewrap({ readPaths: [], network: false });
    const wanted = {
      argv: ['true'] as [string],
      root: makeWorkspace(),
      readable: [],
      env: { PATH: `${homedir()}:/:/usr/bin` },
      network: false,
    };

    const confined = await sandbox.confine(wanted);

    if ('refusal' in confined) throw new Error(confined.refusal);
    confined.release?.();
    const words = Buffer.from(confined.inputs?.[0] ?? [])
      .toString()
      .split('\0');
    expect(words).toContain('--ro-bind');
    expect(words).not.toContain(homedir());
    expect(words.join(' ')).not.toContain('--ro-bind / /');
  });

  test('a variable that holds a NUL byte is refused, and gives bwrap no setting', async () => {
    const sandbox = createBubblewrap({ readPaths: [], network: false });
    const env = { KEY: 'x\0--bind\0/\0/' };

    const root = makeWorkspace();
    const wanted = { argv: ['true'] as [string], root, readable: [], env, network: false };
    const confined = await sandbox.confine(wanted);

    expect(confined).toEqual({ refusal: expect.stringContaining('NUL byte') });
  });

  test('an agent works in it from the first command to the checks', async () => {
    const bash = (command: string) => ({ calls: [{ tool: 'bash', arguments: { command } }] });
    const sandbox = createBubblewrap({ readPaths: [], network: false });
    const running = await startSystem({
      turns: [bash('echo $PPID > parent; touch ../escaped'), finish()],
      sandbox,
    });
    const { task_id: id } = await running.service.create({ description: 'a task' });
    const verify = ['test "$HOME" = /tmp/home'];

    await running.service.execute({ task: id, role: 'engineer', options: { verify } });

    expect(await untilStatus(running, id, 'complete')).toMatchObject({ status: 'complete' });
    expect(readFileSync(join(running.root, 'parent'), 'utf8').trim()).toMatch(/^[0-9]$/);
    expect(existsSync(join(running.root, '..', 'escaped'))).toBe(false);
  });
});

test("a pipe in place of git's settings is not read", async () => {
  const root = temporaryFolder();
  mkdirSync(join(root, '.git'));
  await execa('mkfifo', [join(root, '.git/config')]);
  const home = temporaryFolder();
  writeFileSync(join(home, '.gitconfig'), '[user]\n\tname = Amy\n');
  vi.stubEnv('HOME', home);
  onTestFinished(() => void vi.unstubAllEnvs());
  const text = '[user]\n\tname = Eve\n';
  // It waits until somebody reads.
  const writer = execa('sh', [
    '-c',
    'while :; do printf "$1" > "$0"; done',
    join(root, '.git/config'),
    text,
  ]);
  writer.catch(() => {});
  onTestFinished(() => void writer.kill('SIGKILL'));

  expect(gitIdentity(root)).toMatchObject({ GIT_AUTHOR_NAME: 'Amy' });
});

test('a probe that could not run says nothing about the sandbox', { tags: ['slow'] }, async () => {
  const broken: Sandbox = {
    ...createNoSandbox(),
    confine: async ({ root }) => ({ argv: ['/bin/false'], cwd: root, env: {} }),
  };

  const probes = await runSandboxProbes(broken);

  expect(probes.filter(({ held, tried }) => held || tried)).toEqual([]);
  expect(probes.length).toBeGreaterThan(29);
});

test('the probes detect a sandbox that confines nothing', async () => {
  // Only harmless probes: as root, most of the others would succeed.
  const escaped: string[] = [];
  const toothless: Sandbox = {
    ...createNoSandbox(),
    confine: async ({ argv, root, env }) => {
      const harmless = /\$OTHER\/|out\/|\.git|\.beads|\.vscode|\.github|127\.0\.0\.1/.test(
        argv.at(-1) ?? '',
      );
      return harmless ? { argv, cwd: root, env } : { refusal: 'not tried' };
    },
  };

  for (const { name, held, tried } of await runSandboxProbes(toothless))
    if (tried && !held) escaped.push(name);

  expect(escaped).toEqual(
    expect.arrayContaining([
      'read another project',
      'make a hook of git',
      'reach a server of this machine',
    ]),
  );
  expect(escaped.length).toBeGreaterThan(10);
});

test('without a sandbox commands and checks are refused with what to install, and nothing runs', async () => {
  const sandbox = createBubblewrap({ readPaths: [], network: false, bwrap: '/nowhere/bwrap' });
  const turns = [{ calls: [{ tool: 'bash', arguments: { command: 'touch ran' } }] }, finish()];
  const running = await startSystem({ turns, sandbox });
  const { task_id: id } = await running.service.create({ description: 'a task' });

  await running.service.execute({
    task: id,
    role: 'engineer',
    options: { verify: ['touch checked'] },
  });
  const view = await untilStatus(running, id, 'failed');

  expect(view.error?.message).toMatch(
    /not run: no command runs without a sandbox: .*apt install bubblewrap/,
  );
  expect(existsSync(join(running.root, 'ran'))).toBe(false);
  expect(existsSync(join(running.root, 'checked'))).toBe(false);
});

test('a bubblewrap that cannot be started is refused with the reason', () => {
  const bwrap = join(temporaryFolder(), 'bwrap');
  writeFileSync(bwrap, '', { mode: 0o644 });

  expect(createBubblewrap({ readPaths: [], network: false, bwrap }).check()).toEqual({
    ok: false,
    detail: expect.stringMatching(
      /^bubblewrap cannot be used here: .*EACCES; allow user namespaces/,
    ),
  });
});
