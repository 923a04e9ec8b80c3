import { execFileSync } from 'node:child_process';
import { gitIn } from '../git.ts';

/** A call of the git data API, below the repository. */
export type GitDataCall = (
  method: string,
  path: string,
  body?: Readonly<Record<string, unknown>>,
) => Promise<Readonly<Record<string, unknown>>>;

/** The fields of a commit, one on each line, and its message. */
const fields = '%T%n%P%n%an%n%ae%n%aI%n%cn%n%ce%n%cI%n%B';

/** Repeats in emulate what git has: commits with their files, and where branches are. */
export const createMirror = (dir: string, call: GitDataCall) => {
  const git = (...args: readonly string[]): string => gitIn(dir, ...args);
  const branches = new Map<string, string>();
  const sent = new Set<string>();

  const sendBlob = async (sha: string): Promise<void> => {
    if (sent.has(sha)) return;
    const content = execFileSync('git', ['cat-file', 'blob', sha], { cwd: dir });
    await call('POST', 'git/blobs', { content: content.toString('base64'), encoding: 'base64' });
    sent.add(sha);
  };

  const sendTree = async (commit: string): Promise<void> => {
    const entries = git('ls-tree', '-r', '-z', commit).split('\0').filter(Boolean);
    const tree = entries.map((entry) => {
      const [about = '', path = ''] = entry.split('\t');
      const [mode, type, sha = ''] = about.split(' ');
      return { path, mode, type, sha };
    });
    for (const { type, sha } of tree) if (type === 'blob') await sendBlob(sha);
    await call('POST', 'git/trees', { tree });
  };

  const sendCommit = async (commit: string): Promise<void> => {
    await sendTree(commit);
    const [tree, parents = '', ...rest] = git('show', '-s', `--format=${fields}`, commit).split(
      '\n',
    );
    const [name, email, date, committer, address, committed, ...message] = rest;
    const made = await call('POST', 'git/commits', {
      ...{ tree, parents: parents.split(' ').filter(Boolean), message: message.join('\n') },
      author: { name, email, date },
      committer: { name: committer, email: address, date: committed },
    });
    if (made['sha'] !== commit)
      throw new Error(`emulate has ${String(made['sha'])} for the commit ${commit}`);
    sent.add(commit);
  };

  const moveBranch = async (branch: string, sha: string): Promise<void> => {
    for (const commit of git('rev-list', '--reverse', '--topo-order', sha).split('\n'))
      if (!sent.has(commit)) await sendCommit(commit);
    if (branches.has(branch)) await call('PATCH', `git/refs/heads/${branch}`, { sha, force: true });
    else await call('POST', 'git/refs', { ref: `refs/heads/${branch}`, sha });
    branches.set(branch, sha);
  };

  const update = async (): Promise<void> => {
    const lines = git('for-each-ref', '--format=%(refname:lstrip=2) %(objectname)', 'refs/heads');
    const heads = lines.split('\n').map((line) => line.split(' '));
    for (const [branch = '', sha = ''] of heads)
      if (branches.get(branch) !== sha) await moveBranch(branch, sha);
    for (const branch of branches.keys()) {
      if (heads.some(([name]) => name === branch)) continue;
      await call('DELETE', `git/refs/heads/${branch}`);
      branches.delete(branch);
    }
  };

  let last = Promise.resolve();
  return {
    /** One after the other. After one that failed all fail: emulate is not as git then. */
    update: (): Promise<void> => {
      last = last.then(update);
      return last;
    },
    /** Emulate moved this branch by itself. */
    forget: (branch: string): void => void branches.set(branch, ''),
  };
};
