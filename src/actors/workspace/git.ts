import { execa } from 'execa';

/** What git said; `ok` is false for every exit code but 0. */
export interface GitAnswer {
  readonly ok: boolean;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface GitOptions {
  /** Given to git as it is, instead of being looked for from a folder that somebody else may have changed. */
  readonly gitDir?: string;
  readonly workTree?: string;
  /** Where to look for the repository when no `gitDir` is given. */
  readonly cwd?: string;
  readonly input?: string;
  /** Variables for this call, such as who commits. */
  readonly env?: Readonly<Record<string, string>>;
}

export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>;

/** Git could not do what a workspace needs; the message names the cause and may be shown. */
export class GitError extends Error {
  override readonly name = 'GitError';
}

/** Nothing that a repository says is run: no hook, no monitor, no pager, no signing program (facts/security-reliability 6). */
const pinned = [
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  'core.pager=cat',
  'core.sshCommand=false',
  'core.editor=false',
  'core.quotePath=false',
  'diff.external=',
  'commit.gpgSign=false',
  'protocol.ext.allow=never',
  'safe.bareRepository=explicit',
  'submodule.recurse=false',
  'advice.detachedHead=false',
  'gc.auto=0',
].flatMap((setting) => ['-c', setting]);

const variables = { GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C' };
const timeoutMs = 120_000;
const outputAtMost = 64 * 1024 * 1024;

/** Git with this environment and no other; every call ends in two minutes. */
export const createGit =
  (environment: Readonly<Record<string, string>>): Git =>
  async (args, { gitDir, workTree, cwd = '/', input, env } = {}) => {
    const where = [
      ...(gitDir === undefined ? [] : [`--git-dir=${gitDir}`]),
      ...(workTree === undefined ? [] : [`--work-tree=${workTree}`]),
    ];
    const answer = await execa('git', [...pinned, ...where, ...args], {
      cwd: workTree ?? cwd,
      env: { ...environment, ...variables, ...env },
      extendEnv: false,
      reject: false,
      timeout: timeoutMs,
      maxBuffer: outputAtMost,
      stripFinalNewline: true,
      ...(input === undefined ? { stdin: 'ignore' } : { input }),
    });
    const stderr = String(answer.stderr ?? '') || (answer.shortMessage ?? '');
    return { ok: answer.exitCode === 0, code: answer.exitCode ?? null, stdout: String(answer.stdout ?? ''), stderr };
  };

/** Why git did not: the line that says so, before its advice; else the last one. */
export const reasonIn = (stderr: string): string => {
  const lines = stderr.trim().split('\n');
  return lines.find((line) => /^(fatal|error): /.test(line)) ?? lines.at(-1) ?? '';
};

/** The answer of a call that must succeed. @throws GitError with the reason that git gave */
export const required = async (what: string, call: Promise<GitAnswer>): Promise<string> => {
  const { ok, stdout, stderr } = await call;
  if (ok) return stdout;
  throw new GitError(`${what}: ${reasonIn(stderr) || 'git ended without a word'}`);
};
