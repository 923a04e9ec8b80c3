import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commitOf, commitText } from '../git/commits.ts';
import { createGit, type Git, type GitCall, GitError, reasonIn, requireGit } from '../git/git.ts';
import { byteForByte, configText, type GitDirs, pinnedSettings } from '../git/git-dirs.ts';
import { plainText } from '../git/plain.ts';
import type { WorkTransport } from './transport.ts';

const limitMs = 60_000;

/** What each push has, so that it sends a commit and nothing else. */
export const pushArgs = [
  '--quiet',
  '--porcelain',
  '--no-verify',
  '--no-signed',
  '--no-follow-tags',
];

/** Keys and passwords are where ssh and curl have them: in the user's home, or with an agent. */
const surroundings = (protocol: string, env: NodeJS.ProcessEnv): Record<string, string> => ({
  GIT_ALLOW_PROTOCOL: protocol,
  GIT_SSH_COMMAND:
    'ssh -o BatchMode=yes -o ConnectTimeout=10 -o ClearAllForwardings=yes -o PermitLocalCommand=no',
  ...(env['HOME'] === undefined ? {} : { HOME: env['HOME'] }),
  ...(env['SSH_AUTH_SOCK'] === undefined ? {} : { SSH_AUTH_SOCK: env['SSH_AUTH_SOCK'] }),
});

/** A git directory with the project's objects, and no branch but one of ours at its commit. */
const makeGitDir = async (dir: string, dirs: GitDirs): Promise<void> => {
  const { repository, objects } = dirs;
  const head = await commitOf(dirs, 'HEAD');
  const shallow = await plainText(join(repository.commonDir, 'shallow'));
  await mkdir(join(dir, 'refs', 'heads'), { recursive: true, mode: 0o700 });
  await mkdir(join(dir, 'info'));
  await Promise.all([
    // Without it, the history of the project would be fetched each time.
    ...(head === null ? [] : [writeFile(join(dir, 'refs', 'heads', 'known'), `${head}\n`)]),
    ...(shallow === null ? [] : [writeFile(join(dir, 'shallow'), shallow)]),
    symlink(objects, join(dir, 'objects')),
    writeFile(join(dir, 'HEAD'), 'ref: refs/heads/none\n'),
    writeFile(join(dir, 'info', 'attributes'), byteForByte),
    writeFile(
      join(dir, 'config'),
      configText(repository, [
        ...pinnedSettings,
        ['transfer.fsckObjects', 'true'],
        ['http.followRedirects', 'false'],
        ['fetch.recurseSubmodules', 'false'],
        ['push.recurseSubmodules', 'no'],
      ]),
    ),
  ]);
};

const namesIn = (listed: Buffer): ReadonlyMap<string, string> =>
  new Map(
    listed
      .toString()
      .split('\n')
      .flatMap((line): readonly [string, string][] => {
        const [, tip, name] = /^([0-9a-f]+)\s+refs\/(?:heads|brought)\/(\S+)$/.exec(line) ?? [];
        return tip === undefined || name === undefined ? [] : [[name, tip]];
      }),
  );

/** Git in a new directory that speaks one protocol. */
export const connectGit = async (
  program: string,
  dirs: GitDirs,
  name: string,
  protocol: string,
  env: NodeJS.ProcessEnv,
): Promise<Git> => {
  const dir = join(dirs.temporary, name);
  await makeGitDir(dir, dirs);
  const git = createGit(program, dir, surroundings(protocol, env));
  return (args: readonly string[], call?: GitCall) =>
    git(['-c', `protocol.${protocol}.allow=always`, ...args], { limitMs, ...call });
};

/**
 * A repository at an address. Its git is spoken to by ours, with one protocol, for the branches of
 * agents alone; beside `pushBranch`, this is the one connection that our git makes.
 */
export const createNetworkTransport = (
  program: string,
  { url, protocol }: { readonly url: string; readonly protocol: string },
  env: NodeJS.ProcessEnv,
): WorkTransport => {
  let uses = 0;
  const connect = (dirs: GitDirs): Promise<Git> => {
    uses += 1;
    return connectGit(program, dirs, `network-${uses}`, protocol, env);
  };
  return {
    bring: async (dirs, wanted, signal) => {
      const git = await connect(dirs);
      const call = async (args: readonly string[]): Promise<Buffer> =>
        requireGit(`${url} cannot be read`, git(args, { signal }));
      // A name that is absent there would be an error of fetch.
      const refs = wanted.map(({ name }) => `refs/heads/${name}`);
      const there = namesIn(await call(['ls-remote', '--quiet', url, ...refs]));
      const specs = wanted.flatMap(({ name }) =>
        there.has(name) ? [`+refs/heads/${name}:refs/brought/${name}`] : [],
      );
      if (specs.length === 0) return [];
      const quiet = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-auto-maintenance'];
      await call(['fetch', ...quiet, url, ...specs]);
      const tips = namesIn(await call(['for-each-ref', '--format=%(objectname) %(refname)']));
      const brought = [];
      for (const { name, read } of wanted) {
        const tip = there.has(name) ? tips.get(name) : undefined;
        if (tip === undefined) continue;
        brought.push({
          name,
          tip,
          work: read((await commitText(dirs, tip, { signal })).toString()),
        });
      }
      return brought;
    },
    remove: async (dirs, name, signal) => {
      const git = await connect(dirs);
      const ref = `refs/heads/${name}`;
      const listed = git(['ls-remote', '--quiet', url, ref], { signal });
      if ((await requireGit(`${url} cannot be read`, listed)).length === 0) return;
      const push = ['push', '--quiet', '--no-verify', '--no-signed', url, `:${ref}`];
      await requireGit(`${url} cannot be written`, git(push, { signal }));
    },
    check: async (dirs, signal) => {
      const git = await connect(dirs);
      const listed = await git(['ls-remote', '--quiet', url, 'HEAD'], { signal });
      const advice = `git ls-remote ${url} must work without a question for the user of the server`;
      if (!listed.ok)
        throw new GitError(`${url} cannot be read: ${reasonIn(listed.stderr)}; ${advice}`);
      if ((await commitOf(dirs, 'HEAD')) === null) return;
      const ref = 'refs/heads/agent/check';
      const push = ['push', '--dry-run', '--quiet', '--no-verify', '--no-signed', url];
      const pushed = await git([...push, `known:${ref}`], { signal });
      if (!pushed.ok)
        throw new GitError(
          `${url} cannot be written: ${reasonIn(pushed.stderr)}; give the user of the server the right to push to it`,
        );
    },
    put: async (dirs, { name, commit, from }, signal) => {
      const git = await connect(dirs);
      const ref = `refs/heads/${name}`;
      const lease = `--force-with-lease=${ref}:${from ?? ''}`;
      const pushed = await git(['push', ...pushArgs, lease, url, `${commit}:${ref}`], { signal });
      if (pushed.ok) return true;
      const said = `${pushed.stdout.toString()}\n${pushed.stderr}`;
      if (/stale info|fetch first|already exists|cannot lock ref/.test(said)) return false;
      throw new GitError(`${url} cannot be written: ${reasonIn(pushed.stderr)}`);
    },
  };
};
