import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaSync } from 'execa';
import { messageOf } from '../../machines/message-of.ts';
import {
  allMounts,
  linkedHide,
  reachesSocketsOfOthers,
  readOnlyMounts,
  systemFolders,
  systemLinks,
} from './bubblewrap-mounts.ts';

import { type CopiedHome, createHomeCopies } from './home-copy.ts';
import type { Network, OpenEgress, Sandbox, SandboxRequest } from './port.ts';
import { nothingQuarantined } from './quarantine.ts';
import { seccompFilter } from './seccomp.ts';
import { createSharedFolders, type SharedFolders } from './shared-folder.ts';
import { createSystemSettings } from './system-settings.ts';

/** cgroup version 1, then version 2. */
const hierarchies = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'];
const prefix = 'agent-commands-';

const leftBehind = new Set<string>();
let groupsMade = 0;

const removeGroup = (folder: string): void => {
  try {
    rmdirSync(folder);
    leftBehind.delete(folder);
  } catch {
    leftBehind.add(folder);
  }
};

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Removes groups of this server and of dead ones, never one that a process may still enter. */
const removeStale = (hierarchy: string): void => {
  const ofOthers = readdirSync(hierarchy).filter(
    (name) =>
      name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length).split('-')[0])),
  );
  for (const folder of [...leftBehind, ...ofOthers.map((name) => join(hierarchy, name))])
    removeGroup(folder);
};

const createGroupIn = (hierarchy: string, most: number): string | null => {
  groupsMade += 1;
  const folder = join(hierarchy, `${prefix}${process.pid}-${groupsMade}`);
  try {
    removeStale(hierarchy);
    mkdirSync(folder);
  } catch {
    return null;
  }
  try {
    writeFileSync(join(folder, 'pids.max'), String(most), { flag: 'r+' });
    return folder;
  } catch {
    removeGroup(folder);
    return null;
  }
};

interface ProcessLimit {
  /** Puts a process, and all that it starts from then on, into the limit. @throws a system error */
  readonly enter: (pid: number) => void;
  readonly release: () => void;
}

const processesOf = (folder: string): string => join(folder, 'cgroup.procs');

/** Some hosts let a process make a group but not enter it. */
const canEnter = (folder: string): boolean =>
  spawnSync('/bin/sh', ['-c', 'echo $$ > "$0"', processesOf(folder)], {
    stdio: 'ignore',
    timeout: 5_000,
  }).status === 0;

/** By hierarchy: true when a process could enter a group. */
const tried = new Map<string, boolean>();

const isUsable = (hierarchy: string, folder: string): boolean => {
  const known = tried.get(hierarchy) ?? canEnter(folder);
  tried.set(hierarchy, known);
  return known;
};

/**
 * Limits the processes and threads of one command; null where that is not possible. It needs root,
 * and root needs it: the kernel never applies RLIMIT_NPROC to root, in any namespace.
 */
const limitProcesses = (most: number): ProcessLimit | null => {
  for (const hierarchy of hierarchies) {
    const folder = createGroupIn(hierarchy, most);
    if (folder === null) continue;
    if (isUsable(hierarchy, folder))
      return {
        enter: (pid) => writeFileSync(processesOf(folder), String(pid), { flag: 'r+' }),
        release: () => removeGroup(folder),
      };
    removeGroup(folder);
  }
  return null;
};

interface BubblewrapOptions {
  readonly readPaths: readonly string[];
  /** Of commands, as `describe` names it; each request says its own. */
  readonly network: boolean | readonly string[];
  /** Memory per process; null: no limit; absent: 4 GiB. */
  readonly memoryBytes?: number | null;
  /** Protects a folder of the user; absent: with a new temporary quarantine. */
  readonly folders?: SharedFolders;
  /** Holds copies of the system's settings; absent: a temporary one. */
  readonly settingsFolder?: string;
  /** Holds the copies of home folders of assistants, and nothing else; absent: a temporary one. */
  readonly homesFolder?: string;
  readonly bwrap?: string;
  readonly temporary?: string;
}

/** On Ubuntu, AppArmor lets only this path make user namespaces. */
const defaultBwrap = '/usr/bin/bwrap';
const trialMs = 5_000;
const defaultMemoryBytes = 4 * 1024 ** 3;

const resourceLimits = { fsize: 1024 ** 3, nofile: 4_096, nproc: 1_024, core: 0 };

const serverIsRoot = process.getuid?.() === 0;

/**
 * The machine's root may not be mapped into a further namespace: it becomes an ordinary user there.
 */
const nestingArgs = (): string[] => (serverIsRoot ? ['--uid', '1000', '--gid', '1000'] : []);

const networkText = (network: BubblewrapOptions['network']): string => {
  if (typeof network === 'boolean') return network ? 'on' : 'off';
  return network.length === 0 ? 'off' : network.join(', ');
};

const noEgress: OpenEgress = { within: (argv) => argv, env: {}, release: () => {} };

/** @throws when the namespace of a list of hosts cannot be opened */
const openNetwork = async (network: Network, bwrap: string): Promise<OpenEgress> =>
  typeof network === 'boolean' ? noEgress : network.open(bwrap);

const namespaceArgs = (network: boolean, makesOwnSandbox = false): string[] => [
  '--unshare-user',
  '--unshare-all',
  ...(network ? ['--share-net'] : []),
  ...(makesOwnSandbox ? nestingArgs() : ['--disable-userns']),
  '--die-with-parent',
  '--new-session',
  '--cap-drop',
  'ALL',
];

const prlimit = '/usr/bin/prlimit';

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
const preferForOomKill = (pid: number): void =>
  writeFileSync(`/proc/${pid}/oom_score_adj`, '1000', { flag: 'r+' });

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

const nulSeparated = (words: readonly string[]): Uint8Array =>
  Buffer.from(words.map((word) => `${word}\0`).join(''));

const refusalText = ({ assistant }: SandboxRequest, detail: string): string =>
  assistant === undefined
    ? `no command runs without a sandbox: ${detail}, or set sandbox.mode to off to run commands as you`
    : `no assistant runs without a sandbox: ${detail}, or set sandbox.assistants to off to run assistants as you`;

const temporaryFolders = (): SharedFolders =>
  createSharedFolders({
    quarantine: join(tmpdir(), `agent-quarantine-${randomUUID()}`),
    records: null,
  });

const tryBubblewrap = (
  bwrap: string,
  network: BubblewrapOptions['network'],
  memoryBytes: number | null,
): { readonly ok: boolean; readonly detail: string } => {
  if (!existsSync(bwrap))
    return {
      ok: false,
      detail: `bubblewrap is not installed (${bwrap}); install it with: apt install bubblewrap`,
    };
  const args = [
    ...namespaceArgs(false),
    ...readOnlyMounts(systemFolders),
    ...readOnlyMounts(systemLinks),
    '--proc',
    '/proc',
    '--',
    '/usr/bin/true',
  ];
  const { exitCode, stderr, originalMessage } = execaSync(bwrap, args, {
    reject: false,
    timeout: trialMs,
    env: {},
    extendEnv: false,
  });
  // Of a program that was not started there is no output.
  const said = (stderr ?? originalMessage ?? '').trim().split('\n')[0] ?? '';
  return exitCode === 0
    ? {
        ok: true,
        detail: `bubblewrap, network ${networkText(network)}, ${describeMemoryLimit(memoryBytes)}${describeProcessLimit()}`,
      }
    : {
        ok: false,
        detail: `bubblewrap cannot be used here: ${said || 'it did not start'}; allow user namespaces, in a container with seccomp=unconfined and systempaths=unconfined`,
      };
};

/**
 * Runs commands in their own namespaces (Linux). They see the system's programs and the workspace,
 * change only the workspace, have no network unless allowed, make only the system calls that
 * `seccompFilter` allows, and end with the server.
 */
export const createBubblewrap = (options: BubblewrapOptions): Sandbox => {
  const {
    readPaths,
    network,
    memoryBytes = defaultMemoryBytes,
    bwrap = defaultBwrap,
    temporary = '/tmp',
  } = options;
  const folders = options.folders ?? temporaryFolders();
  const systemSettings = createSystemSettings(
    options.settingsFolder ?? join(tmpdir(), `agent-etc-${randomUUID()}`),
  );
  const copyHome = createHomeCopies(
    options.homesFolder ?? join(tmpdir(), `agent-homes-${randomUUID()}`),
  );
  let tried: ReturnType<typeof tryBubblewrap> | null = null;
  const check = () => {
    // A failure may be repaired while we run; a success stays.
    if (tried?.ok !== true) tried = tryBubblewrap(bwrap, network, memoryBytes);
    return tried;
  };

  return {
    describe: () => check().detail,
    check,
    // Where no command can run, nothing needs protection: `confine` says why.
    shared: {
      ...folders,
      guard: async (root, mark, attempt) =>
        check().ok
          ? folders.guard(root, mark, attempt)
          : { readOnly: [], settle: async () => nothingQuarantined },
    },
    confine: async (wanted) => {
      const { ok, detail } = check();
      if (!ok) return { refusal: refusalText(wanted, detail) };
      const { argv, root, env, assistant } = wanted;
      const link = assistant === undefined ? null : linkedHide(assistant, root);
      if (link !== null)
        return {
          refusal: `${link} of the project is a link, and the assistant would run what is in it; remove the link, or name another backend`,
        };
      const makesOwnSandbox = assistant?.makesOwnSandbox === true;
      // In a namespace of ours there are no sockets of the machine to keep away.
      const unixSockets = wanted.network !== true && !reachesSocketsOfOthers(wanted, readPaths);
      const filter = seccompFilter({ unixSockets, makesOwnSandbox });
      let egress = noEgress;
      let copied: CopiedHome | null = null;
      let mounts: readonly string[] = [];
      try {
        if (assistant?.copies !== undefined)
          copied = await copyHome(assistant.home, assistant.copies);
        const copiedHome = copied?.folder ?? null;
        mounts = allMounts(wanted, { temporary, readPaths, settings: systemSettings, copiedHome });
        egress = await openNetwork(wanted.network, bwrap);
      } catch (error) {
        copied?.remove();
        return { refusal: messageOf(error) };
      }
      const ownFolder = `${temporary}/own`;
      const inside = {
        ...env,
        ...egress.env,
        HOME: assistant?.home ?? `${temporary}/home`,
        TMPDIR: temporary,
      };
      const variables = Object.entries(inside).flatMap(([name, value]) => [
        '--setenv',
        name,
        value,
      ]);
      const settings = [
        ...namespaceArgs(wanted.network !== false, makesOwnSandbox),
        ...(filter === null ? [] : ['--seccomp', '4']),
        '--clearenv',
        ...variables,
        ...mounts,
        ...(wanted.inOwnFolder === true
          ? ['--dir', ownFolder, '--chdir', ownFolder]
          : ['--chdir', root]),
      ];
      // A NUL would begin a setting of its own.
      if (settings.some((word) => word.includes('\0'))) {
        egress.release();
        copied?.remove();
        return { refusal: 'a path or variable of the command holds a NUL byte' };
      }
      const held = serverIsRoot ? limitProcesses(resourceLimits.nproc) : null;
      return {
        argv: egress.within([bwrap, '--args', '3', '--', ...prlimitArgs(memoryBytes), ...argv]),
        // bwrap starts nothing before it has its arguments.
        prepare: (pid) => {
          held?.enter(pid);
          // A program that enters a namespace is closed to us meanwhile; `within` does it.
          if (egress === noEgress) preferForOomKill(pid);
        },
        release: () => {
          held?.release();
          egress.release();
          copied?.remove();
        },
        cwd: '/',
        // Every user of the machine can read a command line, and a variable may be a key.
        inputs: [nulSeparated(settings), ...(filter === null ? [] : [filter])],
        // bwrap's own environment shows inside, in /proc/1/environ.
        env: {},
      };
    },
  };
};
