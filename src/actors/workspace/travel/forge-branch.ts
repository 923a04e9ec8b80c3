import { randomUUID } from 'node:crypto';
import { commitOf } from '../git/commits.ts';
import { GitError, reasonIn } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { ForgeBranch, Pushed, PushTarget } from '../port.ts';
import { parseWorkAddress } from './address.ts';
import { connectGit, pushArgs } from './network-transport.ts';

const callMs = 120_000;
const wordsAtMost = 500;

/** As git itself reads it: `git@github.com:acme/shop.git` */
const shortSsh = /^(?:([\w.-]+)@)?([\w][\w.-]*):(?!\/\/)(\S+)$/;

/** @returns the address, or why nothing is pushed to it */
const addressOf = (url: string) => {
  const [, user, host, path] = shortSsh.exec(url) ?? [];
  if (host !== undefined && path !== undefined)
    return parseWorkAddress(`ssh://${user === undefined ? '' : `${user}@`}${host}/${path}`);
  if (!URL.canParse(url)) return `${JSON.stringify(url)} is no address of a repository`;
  const parsed = new URL(url);
  // The name of a user says nothing beside a token.
  if (parsed.protocol !== 'ssh:' && parsed.password === '') parsed.username = '';
  return parseWorkAddress(parsed.href);
};

/** In the environment of one process: its arguments could be read by every user of the machine. */
const tokenFor = (url: string, token: string): Readonly<Record<string, string>> => ({
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: `http.${url}.extraHeader`,
  GIT_CONFIG_VALUE_0: `Authorization: Basic ${basicOf(token)}`,
});

const basicOf = (token: string): string =>
  Buffer.from(`x-access-token:${token}`).toString('base64');

/** What the other side said, in its own words: lines that begin with `remote:`, and the refusal. */
const wordsOf = (said: string): string => {
  const lines = said.split('\n').flatMap((line) => {
    const [, remote] = /^remote: (?:error: )?(.*\S)\s*$/.exec(line) ?? [];
    const [, why] = /^!\t\S+\t\[remote rejected\] \((.+)\)$/.exec(line) ?? [];
    return remote ?? why ?? [];
  });
  return [...new Set(lines)].join('; ').slice(0, wordsAtMost);
};

const neverHappened =
  /Could not resolve host|Failed to connect|Connection (?:refused|timed out|reset)|error: 5\d\d|timed out|early EOF|hung up unexpectedly|RPC failed/i;

const lacksRight = /error: 403|denied to|Permission denied|write access/i;
const lacksLogin = /Authentication failed|could not read Username|error: 401/i;

/** @throws GitError when the other side did not answer */
const refusalOf = (url: string, branch: string, said: string, token: string | null): string => {
  const reason = reasonIn(said);
  const words = wordsOf(said);
  const more = words === '' ? '' : `: ${words}`;
  if (/protected branch|GH006|GH013|rule violations/i.test(said))
    return `the branch ${branch} of ${url} is protected${more}`;
  if (lacksRight.test(said))
    return token === null
      ? `this user may not push to ${url}${more || `: ${reason}`}`
      : `the token may not push to ${url}${more}; give it the right contents: write, or give another token`;
  if (lacksLogin.test(said))
    return token === null
      ? `${url} asks for a login; give a token, or push by ssh`
      : `${url} does not accept the token: it is wrong, expired or revoked; give another one`;
  if (/not found|error: 404/i.test(said))
    return `there is no repository at ${url}, or ${token === null ? 'this user' : 'the token'} may not see it`;
  if (words === '' || neverHappened.test(said))
    throw new GitError(`${url} cannot be written: ${reason}`);
  return `${url} refused the push: ${words}`;
};

/** As of the port, without the tree. */
type PushAnswer =
  | Exclude<Pushed, { status: 'pushed' }>
  | Omit<Extract<Pushed, { status: 'pushed' }>, 'tree'>;

/** @returns why nothing is sent to or read from it */
const connect = async (
  program: string,
  dirs: GitDirs,
  { token, url: given }: Omit<ForgeBranch, 'branch'>,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
) => {
  const address = addressOf(given);
  if (typeof address === 'string') return address;
  if (address.kind === 'folder')
    return 'nothing is pushed to a folder; give an ssh:// or https:// address';
  const { url, protocol } = address;
  const key = protocol === 'ssh' ? null : token;
  // With a token, nothing is asked for in the user's home.
  const surroundings = key === null ? env : {};
  const git = await connectGit(program, dirs, `forge-${randomUUID()}`, protocol, surroundings);
  const call = { signal, limitMs: callMs, env: key === null ? {} : tokenFor(url, key) };
  return {
    url,
    key,
    git: (args: readonly string[]) => git(args, call),
    withoutToken: (text: string): string =>
      key === null ? text : text.replaceAll(key, '***').replaceAll(basicOf(key), '***'),
  };
};

type Connection = Exclude<Awaited<ReturnType<typeof connect>>, string>;

/** The commit of a branch there; null: there is no such branch. @throws GitError */
const tipThere = async (
  { git, url, withoutToken }: Connection,
  branch: string,
): Promise<string | null> => {
  const listed = await git(['ls-remote', '--quiet', url, `refs/heads/${branch}`]);
  if (!listed.ok)
    throw new GitError(`${url} cannot be read: ${reasonIn(withoutToken(listed.stderr))}`);
  return /^([0-9a-f]+)\s/.exec(listed.stdout.toString())?.[1] ?? null;
};

/**
 * Pushes a commit to a branch, by one protocol, without hooks. A branch is moved from `seen` alone.
 * The token reaches no other process and no other address. @throws GitError when the other side does
 * not answer
 */
export const pushBranch = async (
  program: string,
  dirs: GitDirs,
  commit: string,
  { branch, seen, ...target }: PushTarget,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<PushAnswer> => {
  const connected = await connect(program, dirs, target, env, signal);
  if (typeof connected === 'string') return { status: 'refused', why: connected };
  const { url, key, git, withoutToken } = connected;
  const ref = `refs/heads/${branch}`;
  const lease = `--force-with-lease=${ref}:${seen ?? ''}`;
  const { ok, stdout, stderr } = await git(['push', ...pushArgs, lease, url, `${commit}:${ref}`]);
  if (ok) return { status: 'pushed', commit };
  const said = withoutToken(`${stderr}\n${stdout.toString()}`);
  if (!/stale info|fetch first|already exists|cannot lock ref/.test(said))
    return {
      status: 'refused',
      why: refusalOf(url, branch, said, key),
      ...(lacksRight.test(said) || lacksLogin.test(said) ? { lacksRight: true as const } : {}),
    };
  const there = await tipThere(connected, branch);
  if (there === commit) return { status: 'pushed', commit };
  if (there !== null) return { status: 'moved', commit: there };
  return { status: 'refused', why: `the branch ${branch} was removed from ${url}` };
};

/**
 * Gets the commits of a branch, as `pushBranch` sends them. @returns its tip; null: there is no such
 * branch @throws GitError when it cannot be read
 */
export const fetchBranch = async (
  program: string,
  dirs: GitDirs,
  { branch, ...target }: ForgeBranch,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<string | null> => {
  const connected = await connect(program, dirs, target, env, signal);
  if (typeof connected === 'string') throw new GitError(connected);
  const { url, git, withoutToken } = connected;
  const tip = await tipThere(connected, branch);
  if (tip === null || (await commitOf(dirs, tip)) === tip) return tip;
  const quiet = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-auto-maintenance'];
  const fetched = await git(['fetch', ...quiet, url, `+refs/heads/${branch}:refs/brought/branch`]);
  if (!fetched.ok)
    throw new GitError(`${url} cannot be read: ${reasonIn(withoutToken(fetched.stderr))}`);
  return tip;
};
