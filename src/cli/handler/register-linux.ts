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

/** The name of our entry in mimeapps.list. */
const desktopId = 'agent-task-server.desktop';

const quotedArgument = (argument: string): string =>
  `"${argument.replace(/["`$\\]/g, '\\$&').replaceAll('%', '%%')}"`;

/**
 * The .desktop file that opens `agent://` links. The paths have no control characters. Three layers
 * of the Desktop Entry Specification: quotes, `%` of field codes, and the backslashes of every
 * string value.
 */
export const desktopEntry = ({
  node,
  script,
}: {
  readonly node: string;
  readonly script: string;
}): string =>
  [
    '[Desktop Entry]',
    'Type=Application',
    'Name=Agent Task Server',
    `Exec=${`${quotedArgument(node)} ${quotedArgument(script)} open-url -- %u`.replaceAll('\\', '\\\\')}`,
    'NoDisplay=true',
    'Terminal=true',
    'MimeType=x-scheme-handler/agent;',
    '',
  ].join('\n');

const defaults = 'Default Applications';
const sectionHeader = `[${defaults}]`;
const cache = 'MIME Cache';
const assignment = /^(\s*x-scheme-handler\/agent\s*=\s*)(\S[\s\S]*|)$/;

interface MimeappsLine {
  readonly text: string;
  readonly section: string;
  /** The value for our scheme, if this line assigns it. */
  readonly value: string | null;
}

const mimeappsLines = (text: string): readonly MimeappsLine[] => {
  let section = '';
  return text.split('\n').map((line) => {
    section = /^\s*\[(.*)\]\s*$/.exec(line)?.[1] ?? section;
    return { text: line, section, value: assignment.exec(line)?.[2] ?? null };
  });
};

const idsOf = (value: string): readonly string[] =>
  value
    .split(';')
    .map((id) => id.trim())
    .filter((id) => id !== '');

const withoutOurs = (value: string): string =>
  value
    .split(';')
    .filter((id) => id.trim() !== desktopId)
    .join(';');

const assigns = (line: MimeappsLine, section: string): boolean =>
  line.section === section && line.value !== null;

/** The last line wins, as in GLib. */
const entryIdsIn = (text: string, section: string): readonly string[] =>
  idsOf(mimeappsLines(text).findLast((line) => assigns(line, section))?.value ?? '');

const mapValues = (text: string, change: (value: string) => string | null): string =>
  mimeappsLines(text)
    .flatMap((line) => {
      if (line.section !== defaults || line.value === null) return [line.text];
      const value = change(line.value);
      return value === null
        ? []
        : [line.text.replace(assignment, (_, start: string) => start + value)];
    })
    .join('\n');

export const defaultHandler = (mimeapps: string): string | null =>
  entryIdsIn(mimeapps, defaults)[0] ?? null;

/**
 * Another program that claims `agent://`, and so opens it where there is no default; null without
 * one.
 */
export const otherClaimant = (mimeinfoCache: string): string | null =>
  entryIdsIn(mimeinfoCache, cache).find((id) => id !== desktopId) ?? null;

/**
 * Makes us the default. The previous default stays behind us in the list, so that removing us
 * restores it.
 */
export const withOurDefault = (mimeapps: string): string => {
  if (mimeappsLines(mimeapps).some((line) => assigns(line, defaults)))
    return mapValues(mimeapps, (value) =>
      idsOf(value)[0] === desktopId ? value : `${desktopId};${withoutOurs(value)}`,
    );
  const lines = mimeapps.split('\n');
  const ours = `x-scheme-handler/agent=${desktopId};`;
  const at = lines.findIndex((line) => line.trim() === sectionHeader);
  if (at >= 0) return lines.toSpliced(at + 1, 0, ours).join('\n');
  return `${mimeapps}${mimeapps === '' || mimeapps.endsWith('\n') ? '' : '\n'}${sectionHeader}\n${ours}\n`;
};

/**
 * Removes us, and nothing else, from [Default Applications]; drops the section when it is empty and
 * last.
 */
export const withoutOurDefault = (mimeapps: string): string => {
  const changed = mapValues(mimeapps, (value) => {
    if (!idsOf(value).includes(desktopId)) return value;
    const rest = withoutOurs(value);
    return idsOf(rest).length === 0 ? null : rest;
  });
  return changed !== mimeapps && changed.endsWith(`${sectionHeader}\n`)
    ? changed.slice(0, -sectionHeader.length - 1)
    : changed;
};

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
