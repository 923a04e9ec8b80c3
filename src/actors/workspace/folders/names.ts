import { ignoredByHfs, type Protection, protectionOf } from '../../files/protected-paths.ts';

const likeGit = /^(\.git|git~\d+)[. ]*(:.*)?$/is;

export const textOf = (name: string): string => Buffer.from(name, 'latin1').toString();

/** A name for people: nothing in it moves the cursor. */
export const shownName = (name: string): string => {
  const text = textOf(name);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  return /[\u0000-\u001f\u007f-\u009f"\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufffd]/.test(text)
    ? JSON.stringify(text)
    : text;
};

/** True when some file system takes the name for `.git`. */
export const looksLikeGit = (name: string): boolean =>
  likeGit.test(textOf(name).replace(ignoredByHfs, ''));

export interface NameRule {
  readonly isRepository: boolean;
  /** Git refuses the name; one such name would stop a whole save. */
  readonly isRefused: boolean;
  readonly protection: Protection | null;
}

const ruleOf = (name: string): NameRule => {
  const text = textOf(name);
  const isRepository = text.toLowerCase() === '.git';
  const isRefused = !isRepository && (looksLikeGit(name) || text.includes('\\'));
  return { isRepository, isRefused, protection: protectionOf(text)?.protection ?? null };
};

export const createNameRules = (): ((name: string) => NameRule) => {
  const known = new Map<string, NameRule>();
  return (name) => {
    const found = known.get(name) ?? ruleOf(name);
    known.set(name, found);
    return found;
  };
};

/** Every folder above one of the paths; each ends with `/`. */
export const foldersOf = (paths: Iterable<string>): ReadonlySet<string> => {
  const folders = new Set<string>();
  for (const path of paths)
    for (let at = path.lastIndexOf('/'); at >= 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at + 1);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  return folders;
};
