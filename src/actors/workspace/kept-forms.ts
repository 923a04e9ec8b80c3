import type { Git } from './git.ts';
import { requireGit } from './git.ts';
import type { IndexEntry } from './index-file.ts';

/** A user can write patterns that take git for ever. */
export const attributesMs = 10_000;
const lineEnd = Buffer.from('\r\n');

export const hasLineEnds = (content: Buffer): boolean => content.includes(lineEnd);

export const withoutReturns = (content: Buffer): Buffer =>
  Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');

/** Like git: a file with a NUL, or with a lone CR, is not text. */
const looksLikeText = (content: Buffer): boolean =>
  !content.includes(0) && !/\r(?!\n)/.test(content.toString('latin1'));

export interface FormRules {
  readonly git: Git;
  readonly index: string;
  readonly hasAutoCrlf: boolean;
  readonly usesLargeFiles: boolean;
  readonly signal: AbortSignal;
}

type Attributes = { text?: string; eol?: string; filter?: string };

/** How git stores a file: byte for byte, with LF, or as a pointer of git-lfs. */
export type Form = 'bytes' | 'lf' | 'pointer';

const gitAttributesOf = async (paths: readonly string[], { git, index, signal }: FormRules) => {
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1');
  const args = ['check-attr', '-z', '--stdin', '--cached', 'text', 'eol', 'filter'];
  const call = git(args, { env: { GIT_INDEX_FILE: index }, input, signal, limitMs: attributesMs });
  const words = (await requireGit('the attributes of files cannot be read', call))
    .toString('latin1')
    .split('\0');
  const found = new Map<string, Attributes>();
  for (let at = 0; at + 2 < words.length; at += 3) {
    const [path = '', name = '', value = ''] = words.slice(at, at + 3);
    found.set(path, { ...found.get(path), [name]: value });
  }
  return found;
};

/**
 * The form of each file that is not stored byte for byte. `content` reads a file again; null when
 * it is gone.
 */
export const formsOf = async (
  files: ReadonlyMap<string, IndexEntry | undefined>,
  rules: FormRules,
  content: (path: string) => Buffer | null,
): Promise<ReadonlyMap<string, Form>> => {
  const { git, hasAutoCrlf, usesLargeFiles, signal } = rules;
  const attributes = await gitAttributesOf([...files.keys()], rules);
  const forms = new Map<string, Form>();
  for (const [path, before] of files) {
    const { text = 'unspecified', eol = 'unspecified', filter } = attributes.get(path) ?? {};
    if (usesLargeFiles && filter === 'lfs') {
      forms.set(path, 'pointer');
      continue;
    }
    if (text === 'unset') continue;
    const isText = text === 'set' || (text !== 'auto' && (eol === 'lf' || eol === 'crlf'));
    const maybe = text === 'auto' || (text === 'unspecified' && hasAutoCrlf);
    if (isText) forms.set(path, 'lf');
    if (isText || !maybe) continue;
    const now = content(path);
    if (now === null || !hasLineEnds(now) || !looksLikeText(now)) continue;
    const earlier =
      before === undefined ? null : await git(['cat-file', 'blob', before.oid], { signal });
    // Like git, keep CR LF if the committed version has it.
    if (earlier === null || !hasLineEnds(earlier.stdout)) forms.set(path, 'lf');
  }
  return forms;
};
