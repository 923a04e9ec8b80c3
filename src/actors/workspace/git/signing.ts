import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa, execaSync } from 'execa';
import { readRegular } from '../../files/regular-file.ts';
import { type GitCall, GitError } from './git.ts';

/** Where programs that sign find keys, agents and people. */
const passedOn = [
  'HOME',
  'PATH',
  'USER',
  'GNUPGHOME',
  'GPG_TTY',
  'SSH_AUTH_SOCK',
  'SSH_ASKPASS',
  'XDG_RUNTIME_DIR',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'DBUS_SESSION_BUS_ADDRESS',
];
const isAboutSigning = /^(user\.signingkey|gpg\..+)$/;
const configLimitMs = 5_000;
/** A person may have to type. */
const signLimitMs = 60_000;

/** Options of git before its command, of the command, and how it is called. */
export interface Signing {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly call: GitCall;
}

export const unsigned: Signing = { before: [], after: [], call: {} };

/**
 * Signs commits as the user's own git would. The configuration of a repository does not count, which an
 * agent may have written: it names programs. So does none that is for some repositories (`includeIf`).
 */
export const readSigning = async (program: string, env: NodeJS.ProcessEnv): Promise<Signing> => {
  const given = Object.fromEntries(
    passedOn.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
  const { stdout, failed, shortMessage } = await execa(
    program,
    ['config', '--includes', '-z', '--list'],
    {
      cwd: '/',
      extendEnv: false,
      reject: false,
      timeout: configLimitMs,
      env: { ...given, XDG_CONFIG_HOME: env['XDG_CONFIG_HOME'] ?? '', GIT_DIR: '/nonexistent' },
    },
  );
  if (failed) throw new GitError(`your git configuration cannot be read: ${shortMessage}`);
  const settings = new Map(
    stdout
      .split('\0')
      .filter(Boolean)
      .map((line): [string, string] => {
        const [key = '', ...value] = line.split('\n');
        return [key, value.join('\n')];
      }),
  );
  const [name, email] = [settings.get('user.name'), settings.get('user.email')];
  return {
    before: [...settings]
      .filter(([key]) => isAboutSigning.test(key))
      .flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    after: ['-S'],
    call: {
      env: {
        ...given,
        ...(name === undefined ? {} : { GIT_COMMITTER_NAME: name }),
        ...(email === undefined ? {} : { GIT_COMMITTER_EMAIL: email }),
      },
      limitMs: signLimitMs,
    },
  };
};

const noFiles = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
/** A person who runs `agent doctor` is there to type. */
const trialLimitMs = 20_000;

/** Signs a commit of nothing, in a repository of its own. @returns why it cannot; null: it can */
export const whyUnsigned = async (
  program: string,
  env: NodeJS.ProcessEnv,
): Promise<string | null> => {
  const folder = await mkdtemp(join(tmpdir(), 'agent-sign-'));
  try {
    const { before, after, call } = await readSigning(program, env);
    const inFolder = { cwd: folder, extendEnv: false, env: { ...call.env, GIT_DIR: folder } };
    await execa(program, ['init', '--quiet', '--bare'], inFolder);
    const commit = [...before, 'commit-tree', ...after, '-m', 'A trial', noFiles];
    const tried = await execa(program, commit, {
      ...inFolder,
      reject: false,
      timeout: trialLimitMs,
    });
    return tried.failed ? tried.stderr.trim() || (tried.shortMessage ?? 'it failed') : null;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/**
 * Reads one configuration file as data: git enters no repository and follows no include that a
 * repository names.
 */
const getSetting = (from: readonly string[], key: string, input = ''): string => {
  const options = {
    input,
    cwd: '/',
    env: { GIT_DIR: '/nonexistent' },
    reject: false,
    timeout: 5_000,
  };
  return String(execaSync('git', ['config', ...from, '--get', key], options).stdout ?? '').trim();
};

const configAtMost = 1024 * 1024;

/** Empty for anything but a plain file: reading a pipe would block. */
const configOf = (projectRoot: string): string => {
  try {
    return readRegular(join(projectRoot, '.git', 'config'), configAtMost);
  } catch {
    return '';
  }
};

/**
 * The user's name and address as git variables, for commands that do not see the user's home. Empty
 * when the repository sets a name, since the variables would override it.
 */
export const gitIdentity = (projectRoot: string): Readonly<Record<string, string>> => {
  const config = configOf(projectRoot);
  const local = ['--file', '-', '--no-includes'];
  const own = (key: string): string =>
    getSetting(local, key, config) === '' ? getSetting(['--global'], key) : '';
  const [name, email] = [own('user.name'), own('user.email')];
  return {
    ...(name === '' ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === '' ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
};
