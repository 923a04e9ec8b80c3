import { closeSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { entriesIn, look, openBelow, withFile } from '../folders/handles.ts';
import { createNameRules, textOf } from '../folders/names.ts';
import { plainFolder } from '../folders/plain-folder.ts';
import { isGone, isShut } from '../folders/walk.ts';

/** Which ignored files are copied, and where to: a folder (`/` between parts) of the project. */
export interface KeepIgnored {
  readonly patterns: readonly string[];
  readonly projectRoot: string;
  readonly place: string;
}

const mostFiles = 10_000;
const mostKept = 1_000;
const keptBytesAtMost = 64 * 1024 * 1024;

interface IgnoredFile {
  readonly path: string;
  readonly size: number;
}

/** `*` and `?` stay within a part of the path, `**` does not. */
const patternOf = (glob: string): RegExp => {
  const text = glob.replace(/\*\*\/?|[*?]|[.+^${}()|[\]\\]/g, (part) => {
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    if (part === '**') return '.*';
    return part === '**/' ? '(?:.*/)?' : `\\${part}`;
  });
  return new RegExp(`^${text}$`);
};

const inFolder = <Result>(
  root: number,
  path: string,
  use: (folder: number) => Result,
): Result | null => {
  let folder: number | null = null;
  try {
    folder = openBelow(root, path);
    return use(folder);
  } catch (error) {
    if (!isGone(error) && !isShut(error)) throw error;
    return null;
  } finally {
    if (folder !== null) closeSync(folder);
  }
};

/** The first files of an ignored path; one that ends with `/` is a folder. Follows no link. */
const filesOf = (root: number, path: string, checkpoint: () => void): readonly IgnoredFile[] => {
  const files: IgnoredFile[] = [];
  const folders = path.endsWith('/') ? [path] : [];
  const take = (folder: number, parent: string, name: string): void => {
    const stat = look(folder, name);
    if (stat?.isFile() === true) files.push({ path: parent + name, size: stat.size });
  };
  if (folders.length === 0) {
    const cut = path.lastIndexOf('/') + 1;
    inFolder(root, path.slice(0, cut), (at) => take(at, path.slice(0, cut), path.slice(cut)));
  }
  for (let at = folders.pop(); at !== undefined && files.length < mostFiles; at = folders.pop()) {
    const parent = at;
    checkpoint();
    inFolder(root, parent, (folder) => {
      for (const entry of entriesIn(folder)) {
        if (entry.isDirectory()) folders.push(`${parent}${entry.name}/`);
        else take(folder, parent, entry.name);
      }
    });
  }
  return files;
};

/** What people may want to know of ignored paths, and copies of those that are kept. */
export const createIgnoredFiles = (
  root: number,
  prefix: string,
  keep: KeepIgnored,
  checkpoint: () => void,
) => {
  const patterns = keep.patterns.map(patternOf);
  const rulesOf = createNameRules();
  const isObeyed = (path: string): boolean =>
    path.split('/').some((name) => {
      const { isRepository, isRefused, protection } = rulesOf(name);
      return isRepository || isRefused || protection !== null;
    });
  let kept = 0;
  let bytesLeft = keptBytesAtMost;

  const { projectRoot, place } = keep;
  const copy = ({ path, size }: IgnoredFile): boolean => {
    const inside = path.slice(prefix.length);
    const name = textOf(inside);
    if (!patterns.some((pattern) => pattern.test(name)) || isObeyed(inside)) return false;
    if (kept === mostKept || size > bytesLeft) return false;
    const cut = path.lastIndexOf('/') + 1;
    const bytes = inFolder(root, path.slice(0, cut), (folder) =>
      withFile(folder, path.slice(cut), (file) => {
        const content = Buffer.alloc(size);
        return content.subarray(0, readSync(file, content, 0, size, 0));
      }),
    );
    const to = bytes === null ? null : plainFolder(projectRoot, join(place, dirname(name)), 'make');
    if (bytes === null || to === null) return false;
    rmSync(join(to, basename(name)), { force: true });
    writeFileSync(join(to, basename(name)), bytes, { flag: 'wx' });
    kept += 1;
    bytesLeft -= bytes.length;
    return true;
  };

  /** @returns its size, and why it is not on the branch; null for a path without a file */
  return (
    path: string,
    reason: string,
  ): { readonly bytes: number; readonly why: string } | null => {
    const files = filesOf(root, path, checkpoint);
    if (files.length === 0) return null;
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    const copied = files.filter(copy).length;
    if (copied === 0) return { bytes, why: reason };
    const all =
      copied === files.length
        ? 'a copy is'
        : `${copied} of its files ${copied === 1 ? 'is' : 'are'}`;
    return { bytes, why: `${reason}; ${all} in ${place}` };
  };
};
