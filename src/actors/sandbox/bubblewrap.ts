import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { execaSync } from 'execa';
import { homeMounts, programPaths } from './assistant-mounts.ts';
import type { Sandbox, SandboxRequest } from './port.ts';
import { limitProcesses } from './process-limit.ts';
import { protectionOf } from './protected-paths.ts';
import { nothingQuarantined } from './quarantine.ts';
import { seccompFilter } from './seccomp.ts';
import { createSharedFolders } from './shared-folder.ts';

export interface BubblewrapOptions {
  readonly readPaths: readonly string[];
  readonly network: boolean;
  /** Memory per process; null: no limit; absent: 4 GiB. */
  readonly memoryBytes?: number | null;
  /** For protected paths that commands made; absent: a new temporary folder. */
  readonly quarantine?: string;
  readonly bwrap?: string;
  readonly temporary?: string;
}

/** On Ubuntu, AppArmor lets only this path make user namespaces. */
const defaultBwrap = '/usr/bin/bwrap';
const trialMs = 5_000;
const temporaryBytes = 512 * 1024 * 1024;
const sharedBytes = 256 * 1024 * 1024;
const defaultMemoryBytes = 4 * 1024 ** 3;

/** Programs need these to run; no path in /etc listed here holds a secret. */
const systemFolders = ['/usr', '/opt'];
const systemLinks = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
const systemSettings = [
  ...['ssl', 'ca-certificates', 'alternatives', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'passwd', 'group'],
  ...[
    'nsswitch.conf',
    'localtime',
    'timezone',
    'mime.types',
    'gitconfig',
    'hosts',
    'resolv.conf',
    'protocols',
    'services',
  ],
].map((name) => `/etc/${name}`);

/** Readable for root, and so for the commands of a server that runs as root. */
const privateKeys = '/etc/ssl/private';

const emptyFolder = (path: string): string[] => ['--size', '4096', '--tmpfs', path, '--remount-ro', path];

/** A command must not create it either: the server does, when the tracker is new. */
const trackerFolder = '.beads';

const resourceLimits = { fsize: 1024 ** 3, nofile: 4_096, nproc: 1_024, core: 0 };

const serverIsRoot = process.getuid?.() === 0;

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
const readOnly = (paths: readonly string[]): string[] =>
  paths.filter(exists).flatMap((path) => ['--ro-bind', path, path]);

/**
 * Programs outside the system's folders, such as one's own Node: their folders on PATH, and Node's
 * own files.
 */
const programFolders = (path: string): readonly string[] => {
  const home = homedir();
  // The whole home is never shown, even when a program is directly in it.
  const holdsHome = (folder: string): boolean => `${home}/`.startsWith(folder === '/' ? '/' : `${folder}/`);
  const own = dirname(dirname(process.execPath));
  const folders = path.split(delimiter).filter((folder) => isAbsolute(folder) && existsSync(folder));
  const outside = [...folders, own].filter(
    (folder) =>
      !holdsHome(folder) &&
      ![...systemFolders, ...systemLinks].some((known) => folder === known || folder.startsWith(`${known}/`)),
  );
  return [...new Set(outside)];
};

const isFileOrFolder = (path: string): boolean => {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true || stat?.isDirectory() === true;
};

/**
 * Protected names at the top. In its own folder an agent may write those that a person sees in the
 * diff.
 */
const protectedAtTop = ({ root, git }: SandboxRequest): readonly string[] =>
  (exists(root) ? readdirSync(root) : [])
    .filter((name) => {
      const found = protectionOf(name);
      return found !== null && (git == null || (found.protection === 'held' && found.name !== '.git'));
    })
    .map((name) => join(root, name));

const trackerMounts = (root: string): string[] => {
  const folder = join(root, trackerFolder);
  if (exists(folder)) return isFileOrFolder(folder) ? ['--ro-bind', folder, folder] : [];
  return emptyFolder(folder);
};

const workspaceMounts = (wanted: SandboxRequest): string[] => {
  const { root, git, held = protectedAtTop(wanted), readOnly: isReadOnly = false } = wanted;
  const own = git == null ? [] : ['--bind', git.dir, git.at];
  if (isReadOnly) return ['--ro-bind', root, root, ...own];
  return ['--bind', root, root, ...own, ...readOnly(held.filter(isFileOrFolder)), ...trackerMounts(root)];
};

/**
 * The kernel's settings belong to root, even without capabilities, and apply to the whole machine.
 */
const kernelSettings = ['/proc/sys', '/proc/sysrq-trigger'];

/** Below a /proc that is wholly read-only, no further user namespace can be made. */
const procMounts = (nests: boolean): string[] => (nests ? readOnly(kernelSettings) : ['--remount-ro', '/proc']);

const assistantMounts = ({ assistant, argv: [program], root }: SandboxRequest, temporary: string): string[] =>
  assistant === undefined
    ? []
    : [...homeMounts(assistant, root), ...readOnly(programPaths(program, [assistant.home, temporary, root]))];

const allMounts = (wanted: SandboxRequest, temporary: string, readPaths: readonly string[]): string[] => {
  const { readable, env, assistant } = wanted;
  return [
    ...readOnly(systemFolders),
    ...systemLinks.filter(exists).flatMap((path) => ['--ro-bind', path, path]),
    ...readOnly(systemSettings),
    ...(exists(privateKeys) ? emptyFolder(privateKeys) : []),
    ...['--proc', '/proc', '--dev', '/dev'],
    // Both are in memory: without a size, each may take half of the machine's.
    ...['--size', String(sharedBytes), '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
    ...procMounts(assistant?.nests === true),
    ...['--size', String(temporaryBytes), '--tmpfs', temporary, '--dir', `${temporary}/home`],
    ...assistantMounts(wanted, temporary),
    ...readOnly(programFolders(env['PATH'] ?? '')),
    ...readOnly(readPaths),
    ...readOnly(readable),
    ...workspaceMounts(wanted),
    ...['--remount-ro', '/'],
  ];
};

/**
 * The machine's root may not be mapped into a further namespace: it becomes an ordinary user there.
 */
const nestingArgs = (): string[] => (serverIsRoot ? ['--uid', '1000', '--gid', '1000'] : []);

const namespaceArgs = (network: boolean, nests = false): string[] => [
  ...['--unshare-user', '--unshare-all', ...(network ? ['--share-net'] : [])],
  ...(nests ? nestingArgs() : ['--disable-userns']),
  ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
];

const prlimit = '/usr/bin/prlimit';
const choom = '/usr/bin/choom';

/** Not the address space (`--as`): V8 and others reserve far more than they use. */
const prlimitArgs = (memoryBytes: number | null): string[] => {
  const all = { ...resourceLimits, ...(memoryBytes === null ? {} : { data: memoryBytes }) };
  return existsSync(prlimit)
    ? [prlimit, ...Object.entries(all).map(([name, value]) => `--${name}=${value}`), '--']
    : [];
};

/**
 * Together, many processes can use too much memory: then the kernel kills one of them, not the
 * server.
 */
const preferForOomKill = (argv: SandboxRequest['argv']): SandboxRequest['argv'] =>
  existsSync(choom) ? [choom, '-n', '1000', '--', ...argv] : argv;

const describeMemoryLimit = (memoryBytes: number | null): string => {
  if (memoryBytes === null) return 'no memory limit';
  return existsSync(prlimit)
    ? `memory ${memoryBytes / 1024 ** 2} MB per process`
    : `no memory limit (${prlimit} is missing; install util-linux)`;
};

const describeProcessLimit = (): string => {
  if (!serverIsRoot) return '';
  const held = limitProcesses(resourceLimits.nproc);
  held?.release();
  return held === null ? ', no process limit (the server is root and cannot make a cgroup)' : '';
};

const nulSeparated = (words: readonly string[]): Uint8Array => Buffer.from(words.map((word) => `${word}\0`).join(''));

const refusalText = ({ assistant }: SandboxRequest, detail: string): string =>
  assistant === undefined
    ? `no command runs without a sandbox: ${detail}, or set sandbox.mode to off to run commands as you`
    : `no assistant runs without a sandbox: ${detail}, or set sandbox.assistants to off to run assistants as you`;

/**
 * Runs commands in their own namespaces (Linux). They see the system's programs and the workspace,
 * change only the workspace, have no network unless allowed, make only the system calls that
 * `seccompFilter` allows, and end with the server.
 */
export const createBubblewrap = (options: BubblewrapOptions): Sandbox => {
  const { readPaths, network, memoryBytes = defaultMemoryBytes, bwrap = defaultBwrap, temporary = '/tmp' } = options;
  const folders = createSharedFolders(options.quarantine ?? join(tmpdir(), `agent-quarantine-${randomUUID()}`));
  let tried: { readonly ok: boolean; readonly detail: string } | null = null;

  const tryOnce = (): { readonly ok: boolean; readonly detail: string } => {
    if (!existsSync(bwrap))
      return { ok: false, detail: `bubblewrap is not installed (${bwrap}); install it with: apt install bubblewrap` };
    const args = [
      ...namespaceArgs(network),
      ...readOnly(systemFolders),
      ...readOnly(systemLinks),
      '--proc',
      '/proc',
      '--',
      '/usr/bin/true',
    ];
    const { exitCode, stderr } = execaSync(bwrap, args, {
      reject: false,
      timeout: trialMs,
      env: {},
      extendEnv: false,
    });
    const said = String(stderr).trim().split('\n')[0] ?? '';
    return exitCode === 0
      ? {
          ok: true,
          detail: `bubblewrap, network ${network ? 'on' : 'off'}, ${describeMemoryLimit(memoryBytes)}${describeProcessLimit()}`,
        }
      : { ok: false, detail: `bubblewrap cannot be used here: ${said || 'it did not start'}; allow user namespaces` };
  };
  const check = () => {
    // A failure may be repaired while we run; a success stays.
    if (tried?.ok !== true) tried = tryOnce();
    return tried;
  };

  return {
    describe: () => check().detail,
    check,
    // Where no command can run, nothing needs protection: `confine` says why.
    shared: {
      ...folders,
      guard: async (root) =>
        check().ok ? folders.guard(root) : { readOnly: [], settle: async () => nothingQuarantined },
    },
    confine: (wanted) => {
      const { ok, detail } = check();
      if (!ok) return { refusal: refusalText(wanted, detail) };
      const { argv, root, env, assistant } = wanted;
      const shared = wanted.network ?? network;
      const nests = assistant?.nests === true;
      const filter = seccompFilter({ network: shared, nests });
      const inside = { ...env, HOME: assistant?.home ?? `${temporary}/home`, TMPDIR: temporary };
      const variables = Object.entries(inside).flatMap(([name, value]) => ['--setenv', name, value]);
      const settings = [
        ...namespaceArgs(shared, nests),
        ...(filter === null ? [] : ['--seccomp', '4']),
        '--clearenv',
        ...variables,
        ...allMounts(wanted, temporary, readPaths),
        ...['--chdir', root],
      ];
      // A NUL would begin a setting of its own.
      if (settings.some((word) => word.includes('\0')))
        return { refusal: 'a path or variable of the command holds a NUL byte' };
      const held = serverIsRoot ? limitProcesses(resourceLimits.nproc) : null;
      const spawned = preferForOomKill([bwrap, '--args', '3', '--', ...prlimitArgs(memoryBytes), ...argv]);
      return {
        argv: held?.within(spawned) ?? spawned,
        ...(held === null ? {} : { release: held.release }),
        cwd: '/',
        // Every user of the machine can read a command line, and a variable may be a key.
        inputs: [nulSeparated(settings), ...(filter === null ? [] : [filter])],
        // bwrap's own environment shows inside, in /proc/1/environ.
        env: {},
      };
    },
  };
};
