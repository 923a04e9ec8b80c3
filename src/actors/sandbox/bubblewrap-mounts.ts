import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, sep } from 'node:path';
import { protectionOf } from '../files/protected-paths.ts';
import type { AssistantNeeds, OwnFolder, SandboxRequest } from './port.ts';
import type { SystemSettings } from './system-settings.ts';

/**
 * The size of the tmpfs over an assistant's home and settings folder; its content is lost when the
 * assistant ends.
 */
const homeBytesAtMost = 512 * 1024 * 1024;

const pathKind = (path: string): 'file' | 'folder' | null => {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) return 'folder';
  return stat?.isFile() === true ? 'file' : null;
};

const tmpfsMount = (path: string): string[] => ['--size', String(homeBytesAtMost), '--tmpfs', path];

const folderEntries = (path: string): readonly string[] =>
  pathKind(path) === 'folder' ? readdirSync(path) : [];

/**
 * The session folder of one workspace, apart from the user's and other projects' sessions: an
 * assistant obeys in its next session what it wrote there, such as a memory.
 */
export const sessionsFolder = (path: string, root: string): string =>
  join(path, 'agent-task-server', createHash('sha256').update(root).digest('hex').slice(0, 24));

/** Its sessions stay, its settings are readable, and the rest of the folder is hidden. */
const folderMounts = (
  root: string,
  { path, sessions, credentials, shown }: OwnFolder,
): string[] => {
  const kept = sessionsFolder(path, root);
  mkdirSync(kept, { recursive: true, mode: 0o700 });
  const at = (flag: string, name: string): string[] =>
    pathKind(join(path, name)) === null ? [] : [flag, join(path, name), join(path, name)];
  return [
    ...tmpfsMount(path),
    '--bind',
    kept,
    join(path, sessions),
    ...at('--bind', credentials),
    ...folderEntries(path)
      .filter((name) => shown.test(name))
      .flatMap((name) => at('--ro-bind', name)),
  ];
};

/** The assistant's home: empty but for its own files, and for those that `copied` holds. */
const homeMounts = (
  { home, folders, files }: AssistantNeeds,
  root: string,
  copied: string | null,
): string[] => [
  ...(home === sep ? [] : copied === null ? tmpfsMount(home) : ['--bind', copied, home]),
  ...folders.flatMap((folder) => folderMounts(root, folder)),
  ...files.filter((file) => pathKind(file) === 'file').flatMap((file) => ['--ro-bind', file, file]),
];

const leadingPaths = (path: string): readonly string[] =>
  path.split(sep).map((_, at, parts) => parts.slice(0, at + 1).join(sep));

/** A hidden path that is a link, or is behind one; it would show what it points to. */
export const linkedHide = ({ hides = [] }: AssistantNeeds, root: string): string | null =>
  hides
    .flatMap(leadingPaths)
    .find(
      (path) => lstatSync(join(root, path), { throwIfNoEntry: false })?.isSymbolicLink() === true,
    ) ?? null;

const hidingMounts = ({ hides = [] }: AssistantNeeds, root: string): string[] =>
  hides.flatMap((path) => {
    const kind = pathKind(join(root, path));
    if (kind === null) return [];
    return kind === 'file'
      ? ['--ro-bind', '/dev/null', join(root, path)]
      : [...tmpfsMount(join(root, path)), '--remount-ro', join(root, path)];
  });

/** A program from npm needs the packages beside its own. */
const programFolder = (program: string): string => {
  const [before = '', ...rest] = program.split('/node_modules/');
  return rest.length === 0 ? dirname(program) : join(before, 'node_modules');
};

/**
 * The paths that a program needs: its folder and the folder that its link points into. Where such a
 * folder contains a hidden one, only the file itself.
 */
export const programPaths = (program: string, hidden: readonly string[]): readonly string[] => {
  if (pathKind(program) === null) return [];
  const real = realpathSync(program);
  const visible = (folder: string, file: string): string =>
    hidden.some((each) => `${each}/`.startsWith(folder === sep ? sep : `${folder}/`))
      ? file
      : folder;
  return [...new Set([visible(dirname(program), program), visible(programFolder(real), real)])];
};

const temporaryBytes = 512 * 1024 * 1024;
const sharedBytes = 256 * 1024 * 1024;

export const systemFolders = ['/usr', '/opt'];
export const systemLinks = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
const emptyFolder = (path: string): string[] => [
  '--size',
  '4096',
  '--tmpfs',
  path,
  '--remount-ro',
  path,
];

/** A command must not create it either: the server does, when the tracker is new. */
const trackerFolder = '.beads';

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
export const readOnlyMounts = (paths: readonly string[]): string[] =>
  paths.filter(exists).flatMap((path) => ['--ro-bind', path, path]);

/** A link into /usr is made anew: each mount costs time, the more the more mounts there are. */
const systemLink = (path: string): string[] => {
  const target = lstatSync(path).isSymbolicLink() ? readlinkSync(path) : '';
  return /^\/?usr\/\w+$/.test(target) ? ['--symlink', target, path] : ['--ro-bind', path, path];
};

/**
 * Programs outside the system's folders, such as one's own Node: their folders on PATH, and Node's
 * own files.
 */
const programFolders = (path: string): readonly string[] => {
  const home = homedir();
  // The whole home is never shown, even when a program is directly in it.
  const holdsHome = (folder: string): boolean =>
    `${home}/`.startsWith(folder === '/' ? '/' : `${folder}/`);
  const own = dirname(dirname(process.execPath));
  const folders = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && existsSync(folder));
  const outside = [...folders, own].filter(
    (folder) =>
      !holdsHome(folder) &&
      ![...systemFolders, ...systemLinks].some(
        (known) => folder === known || folder.startsWith(`${known}/`),
      ),
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
      return (
        found !== null && (git == null || (found.protection === 'held' && found.name !== '.git'))
      );
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
  return [
    '--bind',
    root,
    root,
    ...own,
    ...readOnlyMounts(held.filter(isFileOrFolder)),
    ...trackerMounts(root),
  ];
};

/**
 * The kernel's settings belong to root, even without capabilities, and apply to the whole machine.
 */
const kernelSettings = ['/proc/sys', '/proc/sysrq-trigger'];

/** Below a /proc that is wholly read-only, no further user namespace can be made. */
const procMounts = (makesOwnSandbox: boolean): string[] =>
  makesOwnSandbox ? readOnlyMounts(kernelSettings) : ['--remount-ro', '/proc'];

const assistantMounts = (
  { assistant, argv: [program], root }: SandboxRequest,
  temporary: string,
  copiedHome: string | null,
): string[] =>
  assistant === undefined
    ? []
    : [
        ...homeMounts(assistant, root, copiedHome),
        ...readOnlyMounts(programPaths(program, [assistant.home, temporary, root])),
      ];

interface MountSources {
  readonly temporary: string;
  readonly readPaths: readonly string[];
  readonly settings: SystemSettings;
  readonly copiedHome: string | null;
}

/** The arguments of bwrap for everything that a command sees. @throws a system error */
export const allMounts = (
  wanted: SandboxRequest,
  { temporary, readPaths, settings, copiedHome }: MountSources,
): string[] => {
  const { readable, env, assistant } = wanted;
  const others = [
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    // Both are in memory: without a size, each may take half of the machine's.
    '--size',
    String(sharedBytes),
    '--tmpfs',
    '/dev/shm',
    '--remount-ro',
    '/dev',
    ...procMounts(assistant?.makesOwnSandbox === true),
    '--size',
    String(temporaryBytes),
    '--tmpfs',
    temporary,
    '--dir',
    `${temporary}/home`,
    ...assistantMounts(wanted, temporary, copiedHome),
    ...readOnlyMounts(programFolders(env['PATH'] ?? '')),
    ...readOnlyMounts(readPaths),
    ...readOnlyMounts(readable),
    ...workspaceMounts(wanted),
    ...(assistant === undefined ? [] : hidingMounts(assistant, wanted.root)),
    '--remount-ro',
    '/',
  ];
  const places = others.filter((word) => word.startsWith('/etc/'));
  return [
    ...readOnlyMounts(systemFolders),
    ...systemLinks.filter(exists).flatMap(systemLink),
    '--ro-bind',
    settings(places),
    '/etc',
    ...others,
  ];
};

/** The sockets of this network namespace, a line each, with the path at its end. */
const socketsFile = '/proc/net/unix';
const boundPath = /^[0-9a-f]+: (?:\S+ +){5}\S+ ([^@].*)$/gm;

const realPathOf = (folder: string): string => {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
};

const boundSockets = (): readonly string[] =>
  [...readFileSync(socketsFile, 'latin1').matchAll(boundPath)].map(([, path = '']) =>
    Buffer.from(path, 'latin1').toString(),
  );

/**
 * True where a command could connect to a socket of another program; no mount prevents that, not
 * even a read-only one. In the user's own folder such a socket may appear at any time. One with a
 * relative path may be anywhere.
 */
export const reachesSocketsOfOthers = (
  { root, git, readable, env }: SandboxRequest,
  readPaths: readonly string[],
): boolean => {
  if (git == null) return true;
  const shown = [
    root,
    git.dir,
    ...systemFolders,
    ...readPaths,
    ...readable,
    ...programFolders(env['PATH'] ?? ''),
  ].map((path) => `${path}/`);
  const bound = boundSockets();
  const folders = new Set(bound.map(dirname));
  return (
    bound.some((path) => !isAbsolute(path)) ||
    [...folders].some((folder) => {
      const real = `${realPathOf(folder)}/`;
      return shown.some((path) => real.startsWith(path));
    })
  );
};
