import { randomUUID } from 'node:crypto';
import { closeSync, constants as fileConstants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { execa } from 'execa';
import { messageOf } from '../../machines/message-of.ts';
import { hasCode } from '../files/error-code.ts';
import { type Bounds, createHeadTailBuffer } from './head-tail-buffer.ts';
import { endOrphans } from './orphans.ts';

const groupPollMs = 20;
const killAfterMs = 2_000;
const giveUpAfterMs = 10_000;

/** Signals every process of the group; 0 only checks. False when the group does not exist. */
const signalGroup = (group: number, signal: NodeJS.Signals | 0): boolean => {
  if (group <= 1) return false;
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
};

const runsInGroup = async (pid: string, group: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [state, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return processGroup === String(group) && state !== 'Z' && state !== 'X';
};

/**
 * A zombie answers to signal 0. In a container whose first process reaps late or never it stays,
 * but it must not count as running.
 */
const onlyZombiesLeft = async (group: number): Promise<boolean> => {
  const names = await readdir('/proc').catch(() => null);
  if (names === null || process.platform !== 'linux') return false;
  for (const name of names) {
    if (/^\d+$/.test(name) && (await runsInGroup(name, group))) return false;
  }
  return true;
};

export const groupRuns = async (group: number): Promise<boolean> =>
  signalGroup(group, 0) && !(await onlyZombiesLeft(group));

const groupEndsWithin = async (group: number, ms: number): Promise<boolean> => {
  const deadline = performance.now() + ms;
  while (await groupRuns(group)) {
    if (performance.now() >= deadline) return false;
    await delay(groupPollMs);
  }
  return true;
};

/**
 * Ends a process group: waits `patienceMs`, sends SIGTERM, after 2 s SIGKILL, and gives up after 10
 * s more (uninterruptible sleep). `byItself`: nothing had to be ended.
 */
const endGroup = async (
  group: number,
  patienceMs: number,
): Promise<{ readonly byItself: boolean }> => {
  if (await groupEndsWithin(group, patienceMs)) return { byItself: true };
  signalGroup(group, 'SIGTERM');
  if (await groupEndsWithin(group, killAfterMs)) return { byItself: false };
  signalGroup(group, 'SIGKILL');
  await groupEndsWithin(group, giveUpAfterMs);
  return { byItself: false };
};

const boundGroups = new Set<number>();
const killBoundGroups = (): void => {
  for (const group of boundGroups) signalGroup(group, 'SIGKILL');
};

/**
 * Kills the group if this process exits before the returned function is called. Not when this
 * process is killed: then a sandbox ends its command, and the next server ends the others.
 */
const bindToThisProcess = (group: number): (() => void) => {
  if (boundGroups.size === 0) process.on('exit', killBoundGroups);
  boundGroups.add(group);
  return () => {
    boundGroups.delete(group);
    if (boundGroups.size === 0) process.off('exit', killBoundGroups);
  };
};

export type OutputStream = 'stdout' | 'stderr';

export interface Command extends Bounds {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdinFile?: string;
  readonly stdin?: Uint8Array;
  /** Gets the standard input as a pipe; whoever gets it ends it. */
  readonly onStdin?: (stdin: Writable) => void;
  /** Contents of file descriptors 3, 4 and so on. */
  readonly inputs?: readonly Uint8Array[];
  /** Gets the process before it gets its inputs. When it throws, the process is killed. */
  readonly prepare?: (pid: number) => void;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Finds the processes of the command, also later; absent: a new one. */
  readonly mark?: string;
  /** Lets the command open its outputs by name, such as `/dev/stderr`; costs a few milliseconds. */
  readonly namedOutputs?: boolean;
  /** Gets all output as it comes, never cut inside a character. Must not throw. */
  readonly onOutput?: (text: string, stream: OutputStream) => void;
}

export interface CommandResult {
  /**
   * 128 + n when signal n ended the command, as in a shell; null when it did not start or was ended
   * by us.
   */
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  readonly aborted: boolean;
  /** True when the command ended but left processes behind, which were then ended. */
  readonly leftProcesses: boolean;
  readonly output: string;
  readonly truncatedBytes: number;
}

const keptVariables = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'TZ', 'TMPDIR'];

/** The environment for child processes: an allow-list, so that no key of ours gets in. */
export const childEnvironment = (from: NodeJS.ProcessEnv): Readonly<Record<string, string>> => {
  const kept = Object.entries(from).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (keptVariables.includes(entry[0]) || entry[0].startsWith('LC_')),
  );
  return { ...Object.fromEntries(kept), TERM: 'dumb', CI: 'true', NO_COLOR: '1' };
};

/**
 * For processes that a shell does not wait for, such as `>(tee log)`, and for those about to end.
 */
const straggleMs = 200;
/** A process that left the group may hold the pipe open for ever. */
const drainMs = 500;

/** Set for every command and nothing else; it finds processes that left the group. */
const commandIdVariable = 'ATS_COMMAND';

/** Ends what is left of a command that an earlier server started. */
export const endCommand = (mark: string): Promise<number> => endOrphans(commandIdVariable, mark);

type Pipes = Awaited<ReturnType<typeof openNamedPipes>>;

const startProcess = (
  { argv: [file, ...args], cwd, env, stdinFile, stdin, onStdin, inputs = [] }: Command,
  mark: string,
  pipes: Pipes,
) =>
  execa(file, args, {
    cwd,
    env: { ...env, [commandIdVariable]: mark },
    extendEnv: false,
    stdio: [
      onStdin === undefined
        ? (stdin ?? (stdinFile === undefined ? 'ignore' : { file: stdinFile }))
        : 'pipe',
      pipes?.[0].fd ?? 'pipe',
      pipes?.[1].fd ?? 'pipe',
      ...inputs.map(() => 'pipe'),
    ] as ['pipe', 'pipe', 'pipe'],
    detached: true,
    buffer: false,
    reject: false,
  });

type Child = ReturnType<typeof startProcess>;
type CommandEnding = 'itself' | 'timeout' | 'abort';

const firstEnding = (child: Child, { timeoutMs, signal }: Command): Promise<CommandEnding> =>
  new Promise((resolve) => {
    const settle = (ending: CommandEnding) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      resolve(ending);
    };
    const onAbort = () => settle('abort');
    const timer = setTimeout(() => settle('timeout'), timeoutMs);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    child.once('exit', () => settle('itself'));
  });

/**
 * A stream is read at 100 MB/s at most: a flood at full speed takes a whole core, and makes V8's
 * heap grow.
 */
const burstBytes = 512 * 1024;
const killPauseMs = 5;

const listen = (stream: Readable, take: (text: string) => void): void => {
  const decoder = new StringDecoder('utf8');
  let burst = 0;
  const takeSome = (text: string) => {
    if (text !== '') take(text);
  };
  stream.on('data', (chunk: Buffer) => {
    takeSome(decoder.write(chunk));
    burst += chunk.length;
    if (burst < burstBytes) return;
    burst = 0;
    stream.pause();
    setTimeout(() => stream.resume(), killPauseMs);
  });
  stream.on('end', () => takeSome(decoder.end()));
  stream.on('error', () => undefined);
};

const passInput = (child: Child, { onStdin }: Command): void => {
  const input: Writable | null = child.stdin;
  if (input === null || onStdin === undefined) return;
  // The command may end before it has read everything.
  input.on('error', () => undefined);
  onStdin(input);
};

/** @throws what `prepare` throws */
const prepareAndFeed = (child: Child, { prepare, inputs = [] }: Command): void => {
  try {
    if (child.pid !== undefined) prepare?.(child.pid);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  for (const [at, input] of inputs.entries()) {
    const end = child.stdio[3 + at];
    if (!(end instanceof Writable)) throw new Error(`file descriptor ${3 + at} is no pipe`);
    end.on('error', () => undefined);
    end.end(input);
  }
};

const drain = async (outputs: readonly Readable[], closed: Promise<unknown>): Promise<void> => {
  await Promise.race([closed, delay(drainMs, undefined, { ref: false })]);
  // On a busy machine the time may pass before the loop reads what the pipes hold; its next turn
  // reads it.
  await nextTurn();
  for (const output of outputs) output.destroy();
};

const childExitCode = (child: Child): number | null =>
  child.signalCode === null ? child.exitCode : 128 + constants.signals[child.signalCode];

const failedToStart = (output: string, aborted: boolean): CommandResult => ({
  exitCode: null,
  timedOut: false,
  aborted,
  leftProcesses: false,
  output,
  truncatedBytes: 0,
});

interface StartedCommand {
  readonly child: Child;
  readonly group: number;
  readonly mark: string;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

const supervise = async (
  { child, group, mark, stdout, stderr }: StartedCommand,
  command: Command,
): Promise<CommandResult> => {
  const release = bindToThisProcess(group);
  const kept = createHeadTailBuffer(command);
  const take = (stream: OutputStream) => (text: string) => {
    kept.push(text);
    command.onOutput?.(text, stream);
  };
  listen(stdout, take('stdout'));
  listen(stderr, take('stderr'));
  passInput(child, command);
  const closed = Promise.all(
    [stdout, stderr].map((output) => new Promise((resolve) => output.once('close', resolve))),
  );

  const ending = await firstEnding(child, command);
  const patience = ending === 'itself' ? straggleMs : 0;
  const { byItself } = await endGroup(group, patience);
  const escaped = await endOrphans(commandIdVariable, mark, patience);
  release();
  await drain([stdout, stderr], closed);

  const { text, truncatedBytes } = kept.read();
  return {
    exitCode: ending === 'itself' ? childExitCode(child) : null,
    timedOut: ending === 'timeout',
    aborted: ending === 'abort',
    leftProcesses: ending === 'itself' && (!byItself || escaped > 0),
    output: text,
    truncatedBytes,
  };
};

/**
 * Runs a command in its own process group. Resolves when none of its processes runs any more,
 * whether it ended, timed out or was aborted. Never rejects for a failure of the command. Keeps
 * `headBytes` + `tailBytes` of output.
 */
export const runCommand = async (command: Command): Promise<CommandResult> => {
  if (command.signal.aborted) return failedToStart('', true);
  try {
    const { mark = randomUUID() } = command;
    const pipes = command.namedOutputs === true ? await openNamedPipes() : null;
    const child = startProcess(command, mark, pipes);
    closeChildEnds(pipes ?? []);
    prepareAndFeed(child, command);
    const [stdout, stderr] = [
      pipes?.[0].readable ?? child.stdout,
      pipes?.[1].readable ?? child.stderr,
    ];
    if (child.pid !== undefined)
      return await supervise({ child, group: child.pid, mark, stdout, stderr }, command);
    for (const { readable } of pipes ?? []) readable.destroy();
    return failedToStart((await child).shortMessage ?? 'the command could not start', false);
  } catch (error) {
    return failedToStart(messageOf(error), false);
  }
};

interface NamedPipe {
  /** The child's end; close it once the child has started. */
  readonly fd: number;
  readonly readable: Readable;
}

const mkfifoMs = 5_000;
const { O_RDONLY, O_WRONLY, O_NONBLOCK } = fileConstants;

const openPipe = (path: string): NamedPipe => {
  const end = openSync(path, O_RDONLY | O_NONBLOCK);
  const readable = new Socket({ fd: end, readable: true, writable: false });
  return { fd: openSync(path, O_WRONLY), readable };
};

/**
 * Pipes for the two outputs of a command. Node gives a child sockets, which cannot be opened by
 * name: `echo x > /dev/stderr` fails. Null where pipes cannot be made, for instance on a full disk;
 * the caller then uses sockets.
 */
const openNamedPipes = async (): Promise<
  readonly [stdout: NamedPipe, stderr: NamedPipe] | null
> => {
  let folder: string | null = null;
  try {
    folder = mkdtempSync(join(tmpdir(), 'agent-pipes-'));
    const paths = [join(folder, 'stdout'), join(folder, 'stderr')] as const;
    await execa('mkfifo', ['-m', '600', ...paths], { timeout: mkfifoMs });
    return [openPipe(paths[0]), openPipe(paths[1])];
  } catch {
    return null;
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
};

/** Closes our copies of the child's ends; otherwise the outputs would stay open after the child. */
const closeChildEnds = (pipes: readonly NamedPipe[]): void => {
  for (const { fd } of pipes) closeSync(fd);
};
