import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import {
  defaultHandler,
  desktopEntry,
  desktopId,
  otherClaimant,
  withOurDefault,
  withoutOurDefault,
} from './desktop-entry.ts';
import {
  alreadyRegistered,
  type HandlerEnvironment,
  notRegistered,
  type Registration,
  type Removal,
  registered,
  removed,
  skipped,
  taken,
  updated,
} from './registration.ts';

/** The XDG specification ignores relative folders. */
const absoluteFolders = (
  value: string | undefined,
  otherwise: readonly string[],
): readonly string[] => {
  const given = (value ?? '').split(':').filter((folder) => folder.startsWith('/'));
  return given.length === 0 ? otherwise : given;
};

const desktopFiles = ({ env, home }: HandlerEnvironment) => {
  const homeOf = (name: string, otherwise: string): string => {
    const given = env[name];
    return given?.startsWith('/') === true ? given : join(home, otherwise);
  };
  const config = homeOf('XDG_CONFIG_HOME', '.config');
  const data = homeOf('XDG_DATA_HOME', '.local/share');
  const applications = [
    data,
    ...absoluteFolders(env['XDG_DATA_DIRS'], ['/usr/local/share', '/usr/share']),
  ].map((folder) => join(folder, 'applications'));
  return {
    entry: join(data, 'applications', desktopId),
    defaults: join(config, 'mimeapps.list'),
    applications,
    /** The folder with the highest precedence comes first (MIME applications specification). */
    ranked: [config, ...absoluteFolders(env['XDG_CONFIG_DIRS'], ['/etc/xdg']), ...applications],
  };
};

/** Refuses text that is not UTF-8: writing it back would change lines that are not ours. */
const readUtf8 = (path: string): string | null =>
  existsSync(path)
    ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path))
    : null;

/** Keeps links and modes: people link mimeapps.list to their settings folder. */
const writeEntry = async (path: string, text: string): Promise<void> => {
  const target =
    lstatSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const mode = statSync(target, { throwIfNoEntry: false })?.mode ?? 0o644;
  await writeFileAtomically(target, text, { mode: mode & 0o777 });
};

interface FoundHandler {
  readonly id: string;
  readonly file: string;
}

const findIn = (
  files: readonly string[],
  find: (text: string) => string | null,
): FoundHandler | null => {
  for (const file of files) {
    const id = find(readUtf8(file) ?? '');
    if (id !== null) return { id, file };
  }
  return null;
};

/**
 * The program that desktops start today: from a desktop's own list, from a general one, or the only
 * claimant.
 */
const currentDefault = (environment: HandlerEnvironment): FoundHandler | null => {
  const { ranked, applications } = desktopFiles(environment);
  const desktops = (environment.env['XDG_CURRENT_DESKTOP'] ?? '')
    .split(':')
    .filter((name) => name !== '');
  const names = [...desktops.map((name) => `${name.toLowerCase()}-mimeapps.list`), 'mimeapps.list'];
  const lists = ranked.flatMap((folder) => names.map((name) => join(folder, name)));
  const caches = applications.map((folder) => join(folder, 'mimeinfo.cache'));
  return findIn(lists, defaultHandler) ?? findIn(caches, otherClaimant);
};

type InstallChange = 'nothing' | 'entry' | 'default';

/** Writes only files that differ. */
const install = async (environment: HandlerEnvironment): Promise<InstallChange> => {
  const { entry, defaults } = desktopFiles(environment);
  const [oldEntry, oldDefaults] = [readUtf8(entry), readUtf8(defaults) ?? ''];
  const [newEntry, newDefaults] = [desktopEntry(environment), withOurDefault(oldDefaults)];
  // The entry first: a default must not name a missing file.
  if (oldEntry !== newEntry) await writeEntry(entry, newEntry);
  if (oldDefaults !== newDefaults) await writeEntry(defaults, newDefaults);
  if (oldDefaults !== newDefaults || oldEntry === null) return 'default';
  return oldEntry === newEntry ? 'nothing' : 'entry';
};

const checkThatWeWin = (environment: HandlerEnvironment): void => {
  const winner = currentDefault(environment);
  if (winner === null || winner.id === desktopId) return;
  const { defaults } = desktopFiles(environment);
  throw new Error(
    `${winner.file} names ${winner.id} and takes precedence over ${defaults}; remove that line`,
  );
};

/** @throws Error when a file cannot be read or written, or another file overrules it */
export const registerOnLinux = async (environment: HandlerEnvironment): Promise<Registration> => {
  const { env, node, script, force } = environment;
  if (!env['DISPLAY'] && !env['WAYLAND_DISPLAY']) return skipped;
  // The specification forbids = in the program's path; GLib searches for the path before it
  // replaces %%.
  if (/[%=]/.test(node)) throw new Error(`desktops cannot start ${node}: its path has a % or =`);
  const current = currentDefault(environment);
  const other = current === null || current.id === desktopId ? null : current.id;
  if (other !== null && force !== true) return taken(other);
  const change = await install(environment);
  checkThatWeWin(environment);
  if (change === 'entry') return updated(script);
  return change === 'default' ? registered(other) : alreadyRegistered;
};

/** Removes our default and our entry. @throws Error when a file cannot be read or written */
export const unregisterOnLinux = async (environment: HandlerEnvironment): Promise<Removal> => {
  const { entry, defaults } = desktopFiles(environment);
  const before = readUtf8(defaults) ?? '';
  const after = withoutOurDefault(before);
  const done: string[] = [];
  if (before !== after) {
    if (after === '') unlinkSync(realpathSync(defaults));
    else await writeEntry(defaults, after);
    done.push(`our default in ${defaults}`);
  }
  if (lstatSync(entry, { throwIfNoEntry: false }) !== undefined) {
    unlinkSync(entry);
    done.push(entry);
  }
  return done.length === 0 ? notRegistered : removed(done.join(' and '));
};
