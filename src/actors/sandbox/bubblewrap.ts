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
  /** Further folders that commands may read, absolute. */
  readonly readPaths: readonly string[];
  /** Network access of requests that do not name it. */
  readonly network: boolean;
  /** Memory of each process; null: no limit; absent: 4 GiB. */
  readonly memoryBytes?: number | null;
  /** Folder for protected paths that commands made; absent: a new one in the temporary folder. */
  readonly quarantine?: string;
  /** Path of bwrap; tests use others. */
  readonly bwrap?: string;
  /** Mount point of a command's temporary files. */
  readonly temporary?: string;
}

/** Ubuntu lets only this path make user namespaces (facts/security-reliability 4). */
const defaultBwrap = '/usr/bin/bwrap';
const trialMs = 5_000;
const temporaryBytes = 512 * 1024 * 1024;
const sharedBytes = 256 * 1024 * 1024;
const defaultMemoryBytes = 4 * 1024 ** 3;

/** Programs need these to run; no path in /etc here holds a secret. */
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

/** Root may read it, and so may the commands of a server that runs as root. */
const privateKeys = '/etc/ssl/private';

const emptyFolder = (path: string): string[] => ['--size', '4096', '--tmpfs', path, '--remount-ro', path];

/** A command must not make it either: the server does, when the tracker is new. */
const trackerFolder = '.beads';

const resourceLimits = { fsize: 1024 ** 3, nofile: 4_096, nproc: 1_024, core: 0 };

const serverIsRoot = process.getuid?.() === 0;

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
const readOnly = (paths: readonly string[]): string[] =>
  paths.filter(exists).flatMap((path) => ['--ro-bind', path, path]);

/** Programs outside the system's folders, such as a Node of one's own: the folder of PATH, and for Node what belongs to it. */
const programFolders = (path: string): readonly string[] => {
  const home = homedir();
  // The whole home is never shown, even when a program lies right in it.
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

/** Not through a link, which could lead anywhere. */
const isFileOrFolder = (path: string): boolean => {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true || stat?.isDirectory() === true;
};

/** Protected names at the top. In a folder of its own, an agent may write those that a person is shown. */
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

/** The settings of the kernel belong to root, also to one without capabilities, and are those of the whole machine. */
const kernelSettings = ['/proc/sys', '/proc/sysrq-trigger'];

/** Below a /proc that is read-only as a whole, no further namespace of users can be made. */
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
    // Both are memory: without this, half of the machine's.
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

/** Root of the machine may be mapped into no further namespace: there it is an ordinary user, by name alone. */
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

/** Many processes can have too much together: then the kernel ends one of them, and not the server. */
const preferForOomKill = (argv: SandboxRequest['argv']): SandboxRequest['argv'] =>
  existsSync(choom) ? [choom, '-n', '1000', '--', ...argv] : argv;

const describeMemoryLimit = (memoryBytes: number | null): string => {
  if (memoryBytes === null) return 'no limit of memory';
  return existsSync(prlimit)
    ? `memory ${memoryBytes / 1024 ** 2} MB for each process`
    : `no limit of memory (${prlimit} is missing; install util-linux)`;
};

/** Empty where they are held, which needs no word. */
const describeProcessLimit = (): string => {
  if (!serverIsRoot) return '';
  const held = limitProcesses(resourceLimits.nproc);
  held?.release();
  return held === null ? ', no limit of processes (the server is root, and can make no cgroup)' : '';
};

const nulSeparated = (words: readonly string[]): Uint8Array => Buffer.from(words.map((word) => `${word}\0`).join(''));

const refusalText = ({ assistant }: SandboxRequest, detail: string): string =>
  assistant === undefined
    ? `no command is run without a sandbox: ${detail}, or set sandbox.mode to off to run commands as you`
    : `no assistant is run without a sandbox: ${detail}, or set sandbox.assistants to off to run assistants as you`;

/**
 * Commands in namespaces of their own (Linux): they see the system's programs and the workspace, change only the
 * workspace, have no network unless it is allowed, make only the system calls that `seccompFilter` lets through, and end
 * with the server.
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
      : { ok: false, detail: `bubblewrap cannot be used here: ${said || 'it did not run'}; allow user namespaces` };
  };
  const check = () => {
    // What fails may be mended while we run; what works stays.
    if (tried?.ok !== true) tried = tryOnce();
    return tried;
  };

  return {
    describe: () => check().detail,
    check,
    // Where no command can be run, nothing has to be held: `confine` says why.
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
      // It would begin a setting of its own.
      if (settings.some((word) => word.includes('\0')))
        return { refusal: 'a path or variable of the command holds a NUL byte' };
      const held = serverIsRoot ? limitProcesses(resourceLimits.nproc) : null;
      const spawned = preferForOomKill([bwrap, '--args', '3', '--', ...prlimitArgs(memoryBytes), ...argv]);
      return {
        argv: held?.within(spawned) ?? spawned,
        ...(held === null ? {} : { release: held.release }),
        cwd: '/',
        // Every user of the machine can read the command line of a process, and a variable may be a key.
        inputs: [nulSeparated(settings), ...(filter === null ? [] : [filter])],
        // Its own environment shows inside, in /proc/1/environ.
        env: {},
      };
    },
  };
};
