import { mkdirSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Git, GitError, GitTimeout, reasonIn } from './git.ts';
import { withFile } from './handles.ts';
import { isGone, isShut } from './walk.ts';

const rulesAtMost = 1024 * 1024;
/** A user can write rules that take git for ever. */
const ignoreLimitMs = 5_000;
const latin1 = (path: string): Buffer => Buffer.from(path, 'latin1');

/**
 * Asks git which paths it ignores. Git runs in a folder of ours that has only copies of the
 * `.gitignore` files and the folders in question, so it opens nothing that somebody else is
 * changing.
 */
export const createIgnores = (
  git: Git,
  shadow: string,
  note: (text: string) => void,
  signal: AbortSignal,
) => {
  let areTooSlow = false;
  mkdirSync(shadow, { recursive: true, mode: 0o700 });
  const at = (path: string): Buffer => latin1(join(shadow, path));
  const env = { GIT_WORK_TREE: shadow, GIT_INDEX_FILE: '/nonexistent', GIT_LITERAL_PATHSPECS: '0' };
  return {
    showRules: (folder: number, path: string): void => {
      try {
        const rules = withFile(folder, '.gitignore', (file, size) => {
          const bytes = Buffer.alloc(Math.min(size, rulesAtMost));
          return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0));
        });
        if (rules === null) return;
        mkdirSync(at(path), { recursive: true });
        writeFileSync(at(`${path}.gitignore`), rules);
      } catch (error) {
        if (!isGone(error) && !isShut(error)) throw error;
      }
    },
    ignored: async (paths: readonly string[]): Promise<ReadonlySet<string>> => {
      if (areTooSlow) return new Set();
      for (const path of paths) if (path.endsWith('/')) mkdirSync(at(path), { recursive: true });
      const input = latin1(paths.map((path) => `${path}\0`).join(''));
      const args = ['check-ignore', '-z', '--stdin', '--no-index'];
      const answer = await git(args, {
        env,
        cwd: shadow,
        input,
        signal,
        limitMs: ignoreLimitMs,
      }).catch((error: unknown) => {
        if (error instanceof GitTimeout) return null;
        throw error;
      });
      if (answer === null) {
        areTooSlow = true;
        note(
          `the rules of .gitignore took git more than ${ignoreLimitMs / 1_000} s; no further file was treated as ignored`,
        );
        return new Set();
      }
      const { code, stdout, stderr } = answer;
      if (code !== 0 && code !== 1)
        throw new GitError(`git could not say which files are ignored: ${reasonIn(stderr)}`);
      return new Set(stdout.toString('latin1').split('\0'));
    },
  };
};
