import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import type { AssistantNeeds, OwnFolder } from './port.ts';

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
    ...['--bind', kept, join(path, sessions)],
    ...at('--bind', credentials),
    ...folderEntries(path)
      .filter((name) => shown.test(name))
      .flatMap((name) => at('--ro-bind', name)),
  ];
};

/** The assistant's home: empty but for its own files, and for those that `copied` holds. */
export const homeMounts = (
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

export const hidingMounts = ({ hides = [] }: AssistantNeeds, root: string): string[] =>
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
