import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Programs need these to run; no path listed here holds a secret, but for `privateKeys`. */
const names = [
  'ssl',
  'ca-certificates',
  'alternatives',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'passwd',
  'group',
  'nsswitch.conf',
  'localtime',
  'timezone',
  'mime.types',
  'gitconfig',
  'hosts',
  'resolv.conf',
  'protocols',
  'services',
];
/** A folder shows a change of the names in it. */
const watched = [...names, 'ssl/certs', 'ssl/openssl.cnf'];
const privateKeys = 'ssl/private';
/** A command that runs still has the copy with which it began. */
const keptCopies = 5;

const stampOf = (path: string): string => {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
};

const isReadable = (path: string): boolean => {
  try {
    return accessSync(path, constants.R_OK) === undefined;
  } catch {
    // A link whose target is missing is copied as it is.
    return !existsSync(path);
  }
};

const copyInto = (folder: string, source: string): void => {
  for (const name of names) {
    const path = join(source, name);
    if (!existsSync(path) || !isReadable(path)) continue;
    const real = realpathSync(path);
    const to = join(folder, name);
    if (real.startsWith('/usr/')) symlinkSync(real, to);
    else
      cpSync(real, to, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (from) => from !== join(source, privateKeys) && isReadable(from),
      });
  }
};

/** A folder that is only read has no room for the place of a mount. */
const makePlaces = (folder: string, source: string, places: readonly string[]): void => {
  for (const place of places) {
    const to = join(folder, relative(source, place));
    if (existsSync(to)) continue;
    const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() !== false;
    mkdirSync(isFolder ? to : dirname(to), { recursive: true });
    if (!isFolder) writeFileSync(to, '');
  }
};

const removeOld = (folder: string): void => {
  const made = readdirSync(folder).map((name) => join(folder, name));
  const ageOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0;
  const byAge = made.toSorted((one, other) => ageOf(other) - ageOf(one));
  for (const old of byAge.slice(keptCopies)) rmSync(old, { recursive: true, force: true });
};

export type SystemSettings = (places: readonly string[]) => string;

/**
 * Copies the system's settings into one folder below `folder`, again when one has changed: bwrap
 * reads the whole table of mounts at each mount, so one costs less than seventeen. The copy has
 * `places` for mounts below /etc. @returns its path @throws a system error
 */
export const createSystemSettings =
  (folder: string, source = '/etc'): SystemSettings =>
  (places) => {
    const stamp = [...watched.map((name) => stampOf(join(source, name))), ...places].join('\n');
    const at = join(folder, createHash('sha256').update(stamp).digest('hex').slice(0, 16));
    if (existsSync(at)) return at;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const own = mkdtempSync(join(folder, 'new-'));
    try {
      copyInto(own, source);
      makePlaces(own, source, places);
      renameSync(own, at);
    } catch (error) {
      rmSync(own, { recursive: true, force: true });
      // Another program of this user made it meanwhile.
      if (!existsSync(at)) throw error;
    }
    removeOld(folder);
    return at;
  };
