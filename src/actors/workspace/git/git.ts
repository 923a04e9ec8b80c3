import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { Readable, type Writable } from 'node:stream';

export interface GitAnswer {
  readonly ok: boolean;
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface GitCall {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string | Uint8Array | Readable;
  /** Gets what git prints, in place of the answer. */
  readonly output?: Writable;
  readonly signal?: AbortSignal;
  /** After this time git is ended; default two minutes. */
  readonly limitMs?: number;
}

export type Git = (args: readonly string[], call?: GitCall) => Promise<GitAnswer>;

/** Git failed. The message names the cause and may be shown. */
export class GitError extends Error {
  override readonly name = 'GitError';
}

export class GitTimeout extends GitError {}

/**
 * Git's whole environment: no configuration, attributes, program, address or replacement of anybody
 * else.
 */
const environment = {
  PATH: '/usr/bin:/bin',
  HOME: '/nonexistent',
  XDG_CONFIG_HOME: '/nonexistent',
  LC_ALL: 'C',
  TZ: 'UTC',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_ALLOW_PROTOCOL: '',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_ASKPASS: '/bin/false',
  GIT_EDITOR: '/bin/false',
  GIT_PAGER: 'cat',
  // Without these, git asks the system for the user's name, which can mean a connection to a
  // daemon.
  GIT_AUTHOR_NAME: 'agent-server',
  GIT_AUTHOR_EMAIL: 'agent-server@localhost',
  GIT_COMMITTER_NAME: 'agent-server',
  GIT_COMMITTER_EMAIL: 'agent-server@localhost',
} as const;

const gitLimitMs = 120_000;
/** Git removes its locks on the first signal; the second signal cannot be ignored. */
const patienceMs = 1_000;
const outputAtMost = 64 * 1024 * 1024;

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Finds git on a PATH without its relative folders; null when there is none. */
export const findGit = (path: string): string | null =>
  path
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, 'git'))
    .find(isProgram) ?? null;

const gather = (onTooMuch: () => void) => {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    push: (chunk: Buffer): void => {
      size += chunk.length;
      if (size > outputAtMost) onTooMuch();
      else chunks.push(chunk);
    },
    read: () => Buffer.concat(chunks),
  };
};

/**
 * Ends a process group with SIGTERM, and after a second with SIGKILL. Only the first reason counts.
 */
const createEnding = (child: ChildProcess) => {
  let last: NodeJS.Timeout | undefined;
  let reason: Error | null = null;
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // The process group has just ended.
    }
  };
  return {
    end: (why: Error): void => {
      if (reason !== null) return;
      reason = why;
      kill('SIGTERM');
      last = setTimeout(() => kill('SIGKILL'), patienceMs);
    },
    reason: () => reason,
    over: () => clearTimeout(last),
  };
};

/**
 * Git with one git directory and our environment, in its own process group. Every call has a
 * deadline. Its messages name the files of `shownDir`, to which the git directory links.
 */
export const createGit =
  (
    program: string,
    gitDir: string,
    always: Readonly<Record<string, string>> = {},
    shownDir = gitDir,
  ): Git =>
  (args, { env = {}, cwd = '/', input, output, signal, limitMs = gitLimitMs } = {}) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const child = spawn(program, [...args], {
        cwd,
        env: { ...environment, ...always, ...env, GIT_DIR: gitDir },
        detached: true,
        stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      });
      const { end: endProcess, reason, over } = createEnding(child);
      const end = (why: Error): void => {
        endProcess(why);
        // Nobody may read it any more, and git is not over before somebody did.
        if (output !== undefined) child.stdout?.unpipe(output).resume();
        output?.end();
      };
      const [stdout, stderr] = [0, 1].map(() =>
        gather(() =>
          end(new GitError(`git ${args[0]} printed more than ${outputAtMost / 1024 ** 2} MB`)),
        ),
      );
      const onAbort = (): void =>
        end(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
      signal?.addEventListener('abort', onAbort, { once: true });
      const tooLate = new GitTimeout(`git ${args[0]} did not end within ${limitMs / 1_000} s`);
      const limit = setTimeout(() => end(tooLate), limitMs);
      const settle = (): void => {
        clearTimeout(limit);
        over();
        signal?.removeEventListener('abort', onAbort);
      };
      if (output === undefined) child.stdout?.on('data', (chunk: Buffer) => stdout?.push(chunk));
      else child.stdout?.pipe(output);
      child.stderr?.on('data', (chunk: Buffer) => stderr?.push(chunk));
      child.stdin?.on('error', () => {});
      if (input instanceof Readable && child.stdin !== null) input.pipe(child.stdin);
      else child.stdin?.end(input);
      child.once('error', (error) => {
        settle();
        reject(new GitError(`git could not be started: ${error.message}`));
      });
      child.once('close', (code) => {
        settle();
        const why = reason();
        const [out, said] = [stdout, stderr].map((gathered) => gathered?.read() ?? Buffer.alloc(0));
        if (why !== null) reject(why);
        else
          resolve({
            ok: code === 0,
            code,
            stdout: out ?? Buffer.alloc(0),
            stderr: said?.toString().replaceAll(gitDir, shownDir) ?? '',
          });
      });
    });

const leftLock = /'([^']+\.lock)': File exists/;

/** Git's error line; else its last line. Its advice on locks names no file. */
export const reasonIn = (stderr: string): string => {
  const lines = stderr.trim().split('\n');
  const line = lines.find((text) => /^(fatal|error): /.test(text)) ?? lines.at(-1) ?? '';
  const [, lock] = leftLock.exec(line) ?? [];
  return lock === undefined
    ? line
    : `${line.replace(/\.$/, '')}; if no git runs in this project, remove it: rm ${lock}`;
};

/** @throws GitError with git's reason when the call failed */
export const requireGit = async (what: string, call: Promise<GitAnswer>): Promise<Buffer> => {
  const { ok, stdout, stderr } = await call;
  if (ok) return stdout;
  throw new GitError(`${what}: ${reasonIn(stderr) || 'git failed without a message'}`);
};

export const requiredLine = async (what: string, call: Promise<GitAnswer>): Promise<string> =>
  (await requireGit(what, call)).toString().trimEnd();
