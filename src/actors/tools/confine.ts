import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { codeOf } from '../files/error-code.ts';
import { isAtPlace, linksIn, placesOfLinks } from '../files/link-places.ts';
import { type Protection, protectionOf } from '../files/protected-paths.ts';

/** A value, or a text for the model that says why there is none. */
export type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly text: string };

/** A path inside the workspace with every symlink resolved. It need not exist. */
export interface InsidePath {
  /** The names from the root on; empty for the root itself. */
  readonly parts: readonly string[];
  /** Relative to the root, never with a leading dash: `./src/a.ts`. */
  readonly path: string;
  /** The protected name that a person reviews before the merge; null when there is none. */
  readonly reviewed: string | null;
}

/**
 * `write_reviewed` also allows protected names that a person reviews before the merge. It needs a
 * folder of the attempt's own.
 */
export type Access = 'read' | 'write' | 'write_reviewed';

export const writeAccess = (isOwn = false): 'write' | 'write_reviewed' =>
  isOwn ? 'write_reviewed' : 'write';

const reasonsByCode: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'goes through something that is not a folder',
  EISDIR: 'is a folder',
  ELOOP: 'is a symlink that cannot be followed, or goes through one',
  EACCES: 'may not be accessed',
  ENAMETOOLONG: 'is too long',
  ENXIO: 'is not a regular file',
};

export const refusePath = (
  path: string,
  reason: string,
): { readonly ok: false; readonly text: string } => ({
  ok: false,
  text: `${path.replaceAll('\0', '\\0')} ${reason}`,
});

/** `path` is as the model gave it. */
export const refuseForError = (
  path: string,
  error: unknown,
): { readonly ok: false; readonly text: string } => {
  const code = codeOf(error);
  return refusePath(
    path,
    (code && reasonsByCode[code]) ?? `cannot be used (${code ?? String(error)})`,
  );
};

/** As Linux. What does not exist is resolved folder by folder, so more would take a lot of memory. */
const maxPathBytes = 4_096;
const shownLength = 200;

const partsFrom = (root: string, path: string): readonly string[] =>
  relative(root, path)
    .split(sep)
    .filter((part) => part !== '');

const protectionReason = (protection: Protection): string =>
  protection === 'held'
    ? ''
    : " in the project's own folder, where programs run or trust it before anybody reviews it";

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  );

/**
 * Resolves the deepest part that exists and appends the rest. @throws ELOOP for a symlink to
 * nowhere
 */
const realpathOfExisting = async (path: string): Promise<string> => {
  try {
    return await realpath(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || path === dirname(path)) throw error;
    if (await isLink(path)) throw Object.assign(new Error('symlink to nowhere'), { code: 'ELOOP' });
    return join(await realpathOfExisting(dirname(path)), basename(path));
  }
};

const heldAt = (held: readonly string[], path: string) =>
  held
    .filter((place) => isAtPlace([place], path))
    .map((name) => ({ name, protection: 'held' as const }));

/** The target of a link with a protected name at the top is protected as the link. */
const behindLinks = (root: string, real: string) =>
  placesOfLinks(root, linksIn(root)).flatMap(({ path, protection }) =>
    `${real}/`.startsWith(`${join(root, path)}/`) ? [{ name: path, protection }] : [],
  );

/**
 * Resolves a path of the model, which must stay inside the root. For writing it refuses protected
 * names and the places in `held`, in the path as given and in the path behind its symlinks.
 */
export const locate = async (
  root: string,
  path: string,
  access: Access,
  held: readonly string[] = [],
): Promise<Checked<InsidePath>> => {
  if (path.includes('\0')) return refusePath(path, 'contains a NUL byte');
  if (Buffer.byteLength(path) > maxPathBytes)
    return refusePath(`${path.slice(0, shownLength)}…`, 'is too long');
  const given = resolve(root, path);
  const leadsOut = refusePath(
    path,
    'is outside the workspace; use a path inside it, relative to its root',
  );
  if (!isAbsolute(path) && partsFrom(root, given)[0] === '..') return leadsOut;

  let real: string;
  try {
    real = await realpathOfExisting(given);
  } catch (error) {
    return refuseForError(path, error);
  }
  const parts = partsFrom(root, real);
  if (parts[0] === '..') return leadsOut;

  const found =
    access === 'read'
      ? []
      : [
          ...[given, real].flatMap((each) => protectionOf(partsFrom(root, each).join('/')) ?? []),
          ...[given, real].flatMap((each) => heldAt(held, partsFrom(root, each).join('/'))),
          ...behindLinks(root, real),
        ];
  const refused = found.find(({ protection }) => protection === 'held' || access === 'write');
  if (refused)
    return refusePath(
      path,
      `is protected: agents may not write to ${refused.name}${protectionReason(refused.protection)}`,
    );
  return {
    ok: true,
    value: { parts, path: `./${parts.join('/')}`, reviewed: found[0]?.name ?? null },
  };
};
