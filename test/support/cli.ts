import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { isAlive } from '../../src/actors/process/pid.ts';
import { createIo } from '../../src/cli/output/io.ts';
import { isLong } from './long.ts';
import { startServerHere } from './server-here.ts';
import { type AtEnd, temporaryFolder } from './temporary.ts';

const ownPrograms = join(import.meta.dirname, '..', '..', 'dist', 'cli');

/** A published program. */
export const bin = (name: string, programs: string = ownPrograms): string =>
  join(programs, `${name}.js`);

/** The start of a test's configuration: any port, and commands outside a sandbox. */
export const plain = {
  server: { port: 0 },
  sandbox: { mode: 'off' },
  workspace: { mode: 'shared' },
} as const;

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const collect = (child: ChildProcess): Promise<Ended> =>
  new Promise((resolve, reject) => {
    let out = '';
    let err = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      out += chunk;
    });
    child.stderr?.setEncoding('utf8').on('data', (chunk) => {
      err += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err }));
  });

const gone = async (pid: number): Promise<void> => {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
};

interface Here {
  /** Of a terminal. */
  readonly columns?: number;
  readonly answers?: string[];
  readonly ownServer?: boolean;
}

/** Runs `agent` in this process, in a tenth of the time. */
const runHere = async (
  words: readonly string[],
  cwd: string,
  given: NodeJS.ProcessEnv,
  { columns, answers, ownServer }: Here = {},
): Promise<Ended> => {
  const { runAgent }: typeof import('../../src/cli/run-agent.ts') = await import(bin('run-agent'));
  const env = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const [out, err]: [string[], string[]] = [[], []];
  const terminal = { isTTY: columns !== undefined, columns };
  const io = createIo(
    { ...terminal, write: (text) => out.push(text) },
    { ...terminal, write: (text) => err.push(text) },
    env,
    answers === undefined
      ? null
      : async (question) => {
          out.push(question);
          return answers.shift() ?? null;
        },
  );
  const startServer = ownServer === true ? undefined : startServerHere(dirname(bin('agent')));
  const code = await runAgent({ words, cwd, env, startServer }, io);
  return { code, out: out.join(''), err: err.join('') };
};

interface ProjectOptions {
  /** When its server is stopped and its folders are removed: by default after the test. */
  readonly atEnd?: AtEnd;
  /**
   * Its server is a process of its own, as in the long form: for tests of that process, which kill
   * it, look at it, or give it variables that Node itself reads.
   */
  readonly ownServer?: boolean;
  /** The folder of the programs of another version, if one is asked now. */
  readonly programs?: () => string | undefined;
}

/** A new project with the real programs. */
export const openProject = (
  config: object = { api: { backend: 'scripted' } },
  { atEnd = onTestFinished, ownServer = isLong, programs = () => undefined }: ProjectOptions = {},
) => {
  const root = temporaryFolder(atEnd);
  const stateDir = join(temporaryFolder(atEnd), 'state');
  const configFile = join(temporaryFolder(atEnd), 'config.json');
  // Tests look for processes by their ids, which differ inside a sandbox; `sandbox.test.ts` tests
  // that.
  writeFileSync(configFile, JSON.stringify({ ...plain, ...config }));
  const {
    OPENAI_API_KEY: _,
    XDG_STATE_HOME: __,
    DISPLAY: ___,
    WAYLAND_DISPLAY: ____,
    ...inherited
  } = process.env;
  // Its own home: a server registers agent:// links there, not for the user of the tests.
  const env = {
    ...inherited,
    HOME: temporaryFolder(atEnd),
    AGENT_STATE_DIR: stateDir,
    AGENT_SERVER_CONFIG: configFile,
  };
  // The minimum of a repository that makes the folder a project.
  for (const folder of ['objects', 'refs'])
    mkdirSync(join(root, '.git', folder), { recursive: true });
  writeFileSync(join(root, '.git', 'HEAD'), 'ref: refs/heads/main\n');

  /** `through`: a program, with its arguments, that runs the binary. */
  const start = (
    name: 'agent' | 'agent-server',
    args: readonly string[],
    more: NodeJS.ProcessEnv = {},
    through: readonly string[] = [],
  ): ChildProcess => {
    const [command = '', ...rest] = [
      ...through,
      ...[process.execPath, bin(name, programs()), ...args],
    ];
    return spawn(command, rest, {
      cwd: root,
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  };
  const serverFile = () =>
    existsSync(join(stateDir, 'server.json'))
      ? JSON.parse(readFileSync(join(stateDir, 'server.json'), 'utf8'))
      : null;
  const stopServer = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    const file = serverFile();
    if (file === null) return;
    try {
      process.kill(file.pid, signal);
    } catch {
      return;
    }
    await gone(file.pid);
  };
  atEnd(() => stopServer());
  const agentWith = (more: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> =>
    isLong || programs() !== undefined
      ? collect(start('agent', args, more))
      : runHere(args, root, { ...env, ...more }, { ownServer });

  return {
    root,
    stateDir,
    configFile,
    env,
    start,
    collect,
    serverFile,
    stopServer,
    /** Runs a line of shell in which `$AGENT` is the command. */
    shell: (line: string): Promise<Ended> =>
      collect(
        spawn('/bin/sh', ['-c', line], {
          cwd: root,
          env: { ...env, AGENT: `${process.execPath} ${bin('agent')}` },
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      ),
    /** Runs `agent` to its end; in a process of its own in the long form. */
    agent: (...args: string[]): Promise<Ended> => agentWith({}, ...args),
    agentWith,
    /** Starts `agent` on a pseudo-terminal; what is written to stdin is typed there. */
    startOnTerminal: (...args: string[]): ChildProcess => {
      const line = [process.execPath, bin('agent'), ...args].map((word) => `'${word}'`).join(' ');
      // When its command has ended, script reads for 10 ms: on a busy machine, less than was written.
      const held = `trap : INT; ${line}; code=$?; sleep 0.3; exit $code`;
      return spawn('script', ['--quiet', '--return', '--command', held, '/dev/null'], {
        cwd: root,
        env: { ...env, NO_COLOR: '1' },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
    },
    /** As `agent`, on a terminal of 80 columns without colour. */
    onTerminal: (...args: string[]): Promise<Ended> =>
      runHere(args, root, { ...env, NO_COLOR: '1' }, { columns: 80, ownServer }),
    /** As `onTerminal`, where somebody types these answers. */
    typing: (answers: readonly string[], ...args: string[]): Promise<Ended> =>
      runHere(
        args,
        root,
        { ...env, NO_COLOR: '1' },
        { columns: 80, answers: [...answers], ownServer },
      ),
    /** Runs `agent` to its end in a process of its own. */
    program: (...args: string[]): Promise<Ended> => collect(start('agent', args)),
    server: (...args: string[]): Promise<Ended> => collect(start('agent-server', args)),
  };
};
