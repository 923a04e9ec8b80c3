import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnvironment } from '../process/run-command.ts';
import type { Sandbox } from './port.ts';
import { runSandboxed } from './run-sandboxed.ts';
import { refusedCallNumber } from './seccomp.ts';

const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The script exits with 0 when the kernel carried out the call. */
const refusedCall = (name: string, args: string): string =>
  `perl -e ${shellQuote(`exit(syscall(${refusedCallNumber(name)}, ${args}) < 0 ? 1 : 0)`)}`;

/** Scripts that exit with 0 when they escaped. `$OTHER` is a folder outside. */
const escapes: readonly (readonly [name: string, script: string])[] = [
  ['write to /etc', 'touch /etc/agent-probe'],
  ['write to /usr', 'touch /usr/agent-probe'],
  ['write to another project', 'echo x > "$OTHER/new"'],
  ['read another project', 'cat "$OTHER/secret"'],
  ['read the home of the user', 'find "$REAL_HOME" -maxdepth 1 -type f -readable | grep -q .'],
  ['follow a link out of the workspace', 'cat out/secret'],
  ['write through a link out of the workspace', 'echo x > out/new'],
  ['make a hard link to what is outside', 'ln "$OTHER/secret" hard'],
  ['change the settings of git', 'echo x >> .git/config'],
  ['make a hook of git', 'echo x > .git/hooks/pre-commit'],
  ['change the modules of git', 'echo x > .git/info/attributes'],
  ['move .git away', 'mv .git .git2'],
  ['change the tasks of the project', 'echo x > .beads/issues.jsonl'],
  ['change the tasks of an editor', 'echo x > .vscode/tasks.json'],
  ['mount a file system', 'mount -t tmpfs none src'],
  ['make a read-only mount writable', 'mount -o remount,rw /usr && touch /usr/agent-probe'],
  ['unmount a protected folder', 'umount .beads'],
  ['make a namespace of its own', 'unshare -Ur true'],
  [
    'change the settings of the kernel',
    ': >> /proc/sys/kernel/core_pattern || : >> /proc/sys/vm/overcommit_memory',
  ],
  [
    'put letters into a terminal',
    `perl -e ${shellQuote('my $x = "x"; exit(!ioctl(STDIN, 0x5412, $x) && $!{EPERM})')}`,
  ],
  ['see processes of the host', 'test -d "/proc/$HOST_PID" && grep -q node "/proc/$HOST_PID/comm"'],
  [
    'signal a process of the host',
    'test "$(cat /proc/$HOST_PID/comm)" = node && kill -0 "$HOST_PID"',
  ],
  [
    'read the environment of the host',
    'tr "\\0" "\\n" < "/proc/$HOST_PID/environ" | grep -q PATH=',
  ],
  ['reach a server of this machine', 'exec 3<> "/dev/tcp/127.0.0.1/$PORT"'],
  ['use a capability', '! grep -q "CapEff:.0000000000000000" /proc/self/status'],
  ['see a key of the server', 'cat /proc/*/environ | tr "\\0" "\\n" | grep -q probe-canary'],
  ['make a device', 'mknod src/disk b 8 0'],
  ['trace a process', refusedCall('ptrace', '0, 0, 0, 0')],
  ['use the keys of the kernel', refusedCall('keyctl', '0, -3, 1')],
  ['compare handles of processes', refusedCall('kcmp', '$$+0, $$+0, 0, 0, 1')],
  ['leave its namespaces', refusedCall('unshare', '0')],
  ['write a file without end', 'head -c 1200000000 /dev/zero > src/huge'],
];

/** Scripts that succeed and leave a trap for the host; nothing outside may change. */
const traps: readonly (readonly [
  name: string,
  script: string,
  sprung: (root: string) => boolean,
])[] = [
  [
    'have its files moved through a link',
    'rm -rf .beads; ln -s "$OTHER" .beads; ln -s "$OTHER" quarantine; echo x > .envrc; mkdir -p src/.claude',
    (root) => pathExists(join(root, '.envrc')) || pathExists(join(root, 'src/.claude')),
  ],
  [
    'have a folder outside moved into its reach',
    'rm -rf .github; ln -s "$OTHER" .github; ln -s "$OTHER" src/sub',
    (root) => pathExists(join(root, '.github')),
  ],
  [
    'make a repository inside of the project',
    'mkdir -p src/lib/.git; echo x > src/lib/.git/config; mkdir -p src/bare/objects src/bare/refs; touch src/bare/HEAD',
    (root) => pathExists(join(root, 'src/lib/.git')) || pathExists(join(root, 'src/bare/HEAD')),
  ],
  [
    'make settings of git that are not there',
    'touch .git/commondir .git/config.worktree; mkdir .git/modules',
    (root) =>
      ['commondir', 'config.worktree', 'modules'].some((name) =>
        pathExists(join(root, '.git', name)),
      ),
  ],
  [
    'make the settings of an assistant, deep in the project',
    'mkdir -p src/a/b; echo x > src/a/b/opencode.json; mkdir src/a/.pi; chmod 500 src/a; chmod 111 src/a/b',
    (root) =>
      pathExists(join(root, 'src/a/b/opencode.json')) || pathExists(join(root, 'src/a/.pi')),
  ],
];

const pathExists = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false }) !== undefined;

export interface SandboxProbe {
  readonly name: string;
  /** It was tried and did not get out. */
  readonly held: boolean;
  /** False when the probe could not run: it says nothing about the sandbox. */
  readonly tried: boolean;
}

interface ProbeEnd {
  readonly root: string;
  readonly exitCode: number | null;
}

const probeRanText = 'the probe ran';

/** A repository with files that a command must not change, beside a folder that it must not see. */
const makeWorkspace = () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-probe-')));
  const [root, other] = [join(folder, 'workspace'), join(folder, 'other')];
  for (const each of ['.git/hooks', '.git/info', '.beads', '.vscode', 'src'])
    mkdirSync(join(root, each), { recursive: true });
  for (const each of ['workflows', '.vscode']) mkdirSync(join(other, each), { recursive: true });
  for (const file of ['.git/config', '.git/HEAD', '.beads/issues.jsonl', '.vscode/tasks.json'])
    writeFileSync(join(root, file), 'as it was\n');
  writeFileSync(join(other, 'secret'), 'canary');
  symlinkSync(other, join(root, 'out'));
  return { folder, root, other };
};

const readTextOrNull = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
};

/** Tries every known way out of a sandbox, each in its own workspace. */
export const runSandboxProbes = async (sandbox: Sandbox): Promise<readonly SandboxProbe[]> => {
  const server = createServer((_request, response) => response.end('reached'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const probe = async (
    name: string,
    script: string,
    isHeld: (ended: ProbeEnd) => boolean,
  ): Promise<SandboxProbe> => {
    const { folder, root, other } = makeWorkspace();
    const facts = {
      OTHER: other,
      REAL_HOME: homedir(),
      HOST_PID: String(process.pid),
      PORT: String(port),
    };
    const words = Object.entries(facts).map(([key, value]) => `${key}=${shellQuote(value)}`);
    try {
      const result = await runSandboxed(sandbox, {
        readable: [],
        network: false,
        argv: [
          '/bin/sh',
          '-c',
          `${words.join(' ')} bash -c ${shellQuote(`echo ${probeRanText}; ${script}`)}`,
        ],
        root,
        env: childEnvironment(process.env),
        timeoutMs: 20_000,
        signal: new AbortController().signal,
        headBytes: 1_000,
        tailBytes: 1_000,
      });
      const tried = !('refusal' in result) && result.output.startsWith(probeRanText);
      const isUntouched =
        ['.git/config', '.beads/issues.jsonl', '.vscode/tasks.json'].every(
          (file) => readTextOrNull(join(root, file)) === 'as it was\n',
        ) && readdirSync(other).sort().join() === '.vscode,secret,workflows';
      return {
        name,
        held: tried && isUntouched && isHeld({ root, exitCode: result.exitCode }),
        tried,
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  try {
    const probes: SandboxProbe[] = [];
    for (const [name, script] of escapes)
      probes.push(await probe(name, script, ({ exitCode }) => exitCode !== 0));
    for (const [name, script, sprung] of traps)
      probes.push(await probe(name, script, ({ root }) => !sprung(root)));
    return probes;
  } finally {
    server.close();
  }
};
