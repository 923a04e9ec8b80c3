import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gitIn } from '../git.ts';
import { temporaryFolder } from '../temporary.ts';

const data = (text: string) => [`data ${Buffer.byteLength(text)}`, text];

/** The repository of a forge, as git has it: a bare clone that people and servers push to. */
export const openBare = (project: string) => {
  const dir = join(temporaryFolder(), 'forge.git');
  cpSync(join(project, '.git'), dir, { recursive: true });
  appendFileSync(join(dir, 'config'), '[core]\n\tbare = true\n[http]\n\treceivepack = true\n');
  const git = (...args: readonly string[]): string => gitIn(dir, ...args);
  const tryGit = (...args: readonly string[]): string | null => {
    try {
      return git(...args);
    } catch {
      return null;
    }
  };
  const tip = (branch: string): string | null =>
    tryGit('rev-parse', '--quiet', '--verify', `refs/heads/${branch}`);

  /** @returns the commit, or null when it conflicts */
  const mergeTree = (base: string, head: string): string | null =>
    tryGit('merge-tree', '--write-tree', base, head)?.split('\n')[0] ?? null;

  return {
    dir,
    tip,
    isIn: (commit: string, branch: string): boolean =>
      tryGit('merge-base', '--is-ancestor', commit, branch) !== null,
    hasCommitsFor: (head: string, base: string): boolean =>
      git('rev-list', '--count', `${base}..${head}`) !== '0',
    mergeTree,
    /** A file of a commit. */
    show: (commit: string, file: string): string => git('show', `${commit}:${file}`).concat('\n'),
    has: (commit: string, file: string): boolean =>
      tryGit('cat-file', '-e', `${commit}:${file}`) !== null,
    /** Moves a branch to a commit with the tree. */
    land: (branch: string, tree: string, parents: readonly string[], message: string): string => {
      const named = parents.flatMap((parent) => ['-p', parent]);
      const commit = git('commit-tree', tree, ...named, '-m', message);
      git('update-ref', `refs/heads/${branch}`, commit);
      return commit;
    },
    /** A person commits a file to a branch, which is made when it is not there. */
    commit: (branch: string, file: string, text: string, from = 'main'): string => {
      const start = tip(branch) === null ? from : branch;
      const lines = [
        `commit refs/heads/${branch}`,
        'committer Mary <mary@forge.example> now',
        ...data(`change ${file}`),
        `from refs/heads/${start}^0`,
        `M 100644 inline ${file}`,
        ...data(text),
      ];
      execFileSync('git', ['fast-import', '--quiet', '--date-format=now'], {
        cwd: dir,
        input: `${lines.join('\n')}\n`,
      });
      return tip(branch) ?? '';
    },
    /** A person replaces the commits of a branch by one on `main`. */
    replace: (branch: string, file: string, text: string): string => {
      const tree = git('rev-parse', 'main^{tree}');
      const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], { cwd: dir, input: text });
      const entry = `100644 blob ${blob.toString().trim()}\t${file}`;
      const input = `${git('ls-tree', tree)}\n${entry}\n`;
      const next = execFileSync('git', ['mktree'], { cwd: dir, input }).toString().trim();
      const commit = git('commit-tree', next, '-p', 'main', '-m', 'all anew');
      git('update-ref', `refs/heads/${branch}`, commit);
      return commit;
    },
    /** From now on nobody may push to these branches. */
    protect: (branches: readonly string[]): void => {
      const names = branches.map((name) => `refs/heads/${name}`).join('|');
      const hook = `#!/bin/sh
while read -r old new ref; do
  case "$ref" in ${names})
    echo "error: GH006: Protected branch update failed for $ref." >&2
    exit 1;;
  esac
done
`;
      writeFileSync(join(dir, 'hooks', 'pre-receive'), hook, { mode: 0o755 });
    },
  };
};
