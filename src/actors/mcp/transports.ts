import { lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, isAbsolute, resolve, sep } from 'node:path';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { isJsonObject, parseJson } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { dayMs } from '../../machines/milliseconds.ts';
import { createHeadTailBuffer } from '../process/head-tail-buffer.ts';
import { createEventReader, createLineSplitter } from '../process/line-splitter.ts';
import { programPaths } from '../sandbox/bubblewrap-mounts.ts';
import type { Network, OwnGit, Sandbox } from '../sandbox/port.ts';
import { createNoSandbox, runSandboxed, type SandboxedCommand } from '../sandbox/run-sandboxed.ts';
import type { OpenPlace } from './connection.ts';
import { maxMessageLength, type PeerInput, peerError, type Transport } from './peer.ts';
import { type HttpPlace, McpError, type McpServer, type StdioLaunch } from './port.ts';
import { visibleText } from './tool-list.ts';
import { withVariables } from './variables.ts';

/** The point at which a stream that was cut goes on. */
interface StreamPosition {
  lastEvent: string | null;
  retryMs: number;
  /** Connections in a row that brought no event. */
  empty: number;
}

const retryMs = 1_000;
const longestRetryMs = 60_000;
const emptyConnectionsAtMost = 5;

const newPosition = (): StreamPosition => ({ lastEvent: null, retryMs, empty: 0 });

/** @throws McpError in `push` when an event is too long */
const readEvents = (position: StreamPosition, onData: (data: string) => void) =>
  createEventReader({
    longest: maxMessageLength,
    onData,
    onTooLong: () => {
      throw new McpError(`it sends an event of more than ${maxMessageLength} characters`);
    },
    onResume: (field, value) => {
      if (field === 'id' && isSession(value)) {
        position.lastEvent = value;
        position.empty = 0;
      }
      if (field === 'retry' && /^\d{1,6}$/.test(value))
        position.retryMs = Math.min(Number(value), longestRetryMs);
    },
  });

const goodbyeMs = 1_000;
const shownErrorLength = 300;

/** The server names a session with visible characters. */
const isSession = (text: string | null): text is string =>
  text !== null && /^[\x21-\x7e]{1,256}$/.test(text);

const whyHttpFailed = (error: unknown): string => {
  const { cause } = error instanceof Error ? error : {};
  const words = messageOf(error);
  return cause instanceof Error ? `${words}: ${messageOf(cause)}` : words;
};

/** Fetch would say the value of one that it refuses. @throws McpError */
const checkedHeaders = (given: HttpPlace['headers']): HttpPlace['headers'] =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (/^[\w-]+$/.test(name) && /^[\t\x20-\x7e]*$/.test(value.trim()))
        return [name, value.trim()];
      throw new McpError(`the header ${name} holds a character that no header may hold`);
    }),
  );

/** The body in pieces; more than a message may have is an error. */
const readAnswerBody = async (response: Response, take: (text: string) => void): Promise<void> => {
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) take(decoder.decode(chunk, { stream: true }));
  take(decoder.decode());
};

const readText = async (response: Response, most: number): Promise<string> => {
  let text = '';
  await readAnswerBody(response, (piece) => {
    text += piece;
    if (text.length > most) throw new McpError(`it answers with more than ${most} characters`);
  });
  return text;
};

const httpRefusal = async (response: Response): Promise<McpError> => {
  const { status } = response;
  const text = (await readText(response, maxMessageLength)).trim();
  const body = parseJson(text);
  if (isJsonObject(body) && isJsonObject(body['error']) && 'code' in body['error'])
    return peerError(body['error'], status);
  const said = text.slice(0, shownErrorLength);
  return new McpError(`it answers with status ${status}${said === '' ? '' : `: ${said}`}`, {
    status,
  });
};

/**
 * Speaks Streamable HTTP: each message is a POST, and its answer one message or a stream of them.
 * Follows no redirect, so that no header goes to another place.
 */
export const openHttp =
  (url: string, given: HttpPlace['headers']) =>
  ({ receive, fail, closed }: PeerInput): Transport => {
    const headers = checkedHeaders(given);
    const stop = new AbortController();
    const asking = new Map<number, AbortController>();
    let session: string | null = null;
    let version: string | null = null;

    const ask = (
      method: 'GET' | 'POST' | 'DELETE',
      signal: AbortSignal,
      own: Readonly<Record<string, string>> = {},
      body?: string,
    ) =>
      fetch(url, {
        method,
        redirect: 'error',
        signal,
        headers: {
          ...headers,
          accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(session === null ? {} : { 'mcp-session-id': session }),
          ...(version === null ? {} : { 'mcp-protocol-version': version }),
          ...own,
        },
        ...(body === undefined ? {} : { body }),
      });

    /** Keeps the version that the server agreed to: each further request names it. */
    const take = (text: string): void => {
      version ??= /"protocolVersion"\s*:\s*"([\d-]{1,20})"/.exec(text)?.[1] ?? null;
      receive(text);
    };
    /** Reads a stream; a connection that breaks is the end of it. */
    const readStream = async (response: Response, position: StreamPosition): Promise<void> => {
      position.empty += 1;
      try {
        await readAnswerBody(response, readEvents(position, take).push);
      } catch (error) {
        if (error instanceof McpError || position.lastEvent === null) throw error;
      }
    };
    const isStream = ({ headers }: Response): boolean =>
      headers.get('content-type')?.split(';')[0]?.trim() === 'text/event-stream';

    /** Goes on with a stream that ended, until the signal says that nobody waits for more of it. */
    const resume = async (position: StreamPosition, signal: AbortSignal): Promise<void> => {
      while (!signal.aborted && position.empty < emptyConnectionsAtMost) {
        await delay(position.retryMs, undefined, { signal });
        const { lastEvent } = position;
        const own: Record<string, string> =
          lastEvent === null ? {} : { 'last-event-id': lastEvent };
        const response = await ask('GET', signal, own);
        if (!response.ok || !isStream(response)) {
          await response.body?.cancel();
          return;
        }
        await readStream(response, position);
      }
    };
    const readMessages = async (
      response: Response,
      id: number | null,
      signal: AbortSignal,
    ): Promise<void> => {
      const type = response.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
      if (isStream(response)) {
        const position = newPosition();
        await readStream(response, position);
        if (id !== null && position.lastEvent !== null && asking.has(id))
          await resume(position, signal);
      } else if (type === 'application/json') take(await readText(response, maxMessageLength));
      else if (id !== null) throw new McpError(`it answers with ${type || 'nothing'}, not JSON`);
      else await response.body?.cancel();
    };
    const readAnswer = async (
      response: Response,
      id: number | null,
      signal: AbortSignal,
    ): Promise<void> => {
      const given = response.headers.get('mcp-session-id');
      if (isSession(given)) session = given;
      if (response.status === 404 && session !== null) closed('its session is over');
      if (!response.ok) throw await httpRefusal(response);
      await readMessages(response, id, signal);
      // Of an answer that came, nothing waits any more.
      fail(id, 'its answer ends without a result');
    };

    return {
      isProgram: false,
      send: (text, id, own) => {
        const ends = new AbortController();
        if (id !== null) asking.set(id, ends);
        const signal = AbortSignal.any([stop.signal, ends.signal]);
        ask('POST', signal, own, text)
          .then((response) => readAnswer(response, id, signal))
          .catch((error: unknown) =>
            fail(id, error instanceof McpError ? error : whyHttpFailed(error)),
          )
          .finally(() => asking.delete(id ?? 0));
      },
      drop: (id) => {
        asking.get(id)?.abort();
        asking.delete(id);
      },
      listen: () => {
        const position = { ...newPosition(), retryMs: 0 };
        resume(position, stop.signal).catch(() => {});
      },
      close: async () => {
        stop.abort();
        if (session === null) return;
        const goodbye = ask('DELETE', AbortSignal.timeout(goodbyeMs));
        await goodbye.then((response) => response.body?.cancel()).catch(() => {});
        session = null;
      },
    };
  };

const longestLifeMs = 7 * dayMs;
/** Without its input a server should end by itself; then it is ended. */
const closeGraceMs = 300;
const shownErrorBytes = 1_000;
const maxErrorLength = 64 * 1024 * 1024;

type StdioProgram = Pick<
  SandboxedCommand,
  'argv' | 'root' | 'readable' | 'git' | 'env' | 'readOnly' | 'network' | 'inOwnFolder'
>;

const endsWithin = (work: Promise<unknown>, ms: number): Promise<unknown> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};

/** Starts a server as a command of the sandbox: one message a line, both ways. */
export const openStdio =
  (sandbox: Sandbox, program: StdioProgram) =>
  ({ receive, closed }: PeerInput): Transport => {
    const stop = new AbortController();
    const stderr = createHeadTailBuffer({ headBytes: 0, tailBytes: shownErrorBytes });
    let errorLength = 0;
    let unsent = '';
    let input: Writable | null = null;

    const end = (why: string): void => {
      closed(why);
      stop.abort();
    };
    const lines = createLineSplitter({
      longest: maxMessageLength,
      onLine: receive,
      onDropped: () => end(`it sent a line of more than ${maxMessageLength / 1024 ** 2} MiB`),
    });
    const takeOutput = (text: string, stream: 'stdout' | 'stderr'): void => {
      if (stop.signal.aborted) return;
      if (stream === 'stdout') {
        lines.push(text);
        return;
      }
      stderr.push(text);
      errorLength += text.length;
      if (errorLength > maxErrorLength) end('it floods its error output');
    };
    const run = async (): Promise<void> => {
      const result = await runSandboxed(sandbox, {
        ...program,
        timeoutMs: longestLifeMs,
        signal: stop.signal,
        headBytes: 0,
        tailBytes: shownErrorBytes,
        onStdin: (stdin) => {
          input = stdin;
          stdin.on('error', () => {});
          stdin.write(unsent);
          unsent = '';
        },
        onOutput: takeOutput,
      });
      if ('refusal' in result) return closed(result.refusal);
      const { text } = stderr.read();
      const said = visibleText(
        text === '' && result.exitCode === null ? result.output : text,
      ).trim();
      const code = result.exitCode === null ? '' : ` with exit code ${result.exitCode}`;
      closed(`it ended${code}${said === '' ? '' : `: ${said}`}`);
    };
    const done = run().catch((error: unknown) => closed(`it could not be started: ${error}`));

    return {
      isProgram: true,
      send: (text) => {
        if (input === null) unsent += `${text}\n`;
        else input.write(`${text}\n`);
      },
      close: async () => {
        if (!stop.signal.aborted) {
          input?.end();
          await endsWithin(done, closeGraceMs);
        }
        stop.abort();
        await done;
      },
    };
  };

/** Where the servers of an attempt run. */
export interface McpSurroundings {
  readonly root: string;
  readonly readable: readonly string[];
  readonly git: OwnGit | null | undefined;
  readonly sandbox: Sandbox;
  readonly networkOf: (server: Pick<McpServer, 'name'> & Pick<StdioLaunch, 'network'>) => Network;
  /** A folder with the user's commit, where no agent has worked; null: there is none. */
  readonly usersFiles: (() => Promise<string>) | null;
  /** The environment of every child process of the attempt. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that the configuration may name: the environment of our own process. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** The folder of the agent, for a server that starts in an empty one. */
const workspaceVariable = 'AGENT_WORKSPACE';

/** False for a text that can be no path. */
const exists = (path: string): boolean => {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
};

/** `--file=tools/x.js` names a path after its option. */
const pathIn = (word: string): { readonly option: string; readonly path: string } => {
  const [, option = '', path = word] = /^(-[^=]*=)(.+)$/.exec(word) ?? [];
  return { option, path };
};

/** A word that may be a path below the folder where a program starts. */
const mayBePath = (word: string): boolean => {
  const { path } = pathIn(word);
  if (isAbsolute(path) || path.startsWith('-')) return false;
  return path === '.' || path.includes('/') || /\.\w{1,5}$/.test(path);
};

/** Whether a path leads to something below the folder. */
const isBelow = (path: string, folder: string): boolean => {
  const whole = resolve(folder, path);
  return `${whole}${sep}`.startsWith(`${folder}${sep}`) && exists(whole);
};

const inFolder = (word: string, folder: string): string => {
  const { option, path } = pathIn(word);
  return mayBePath(word) && isBelow(path, folder) ? `${option}${resolve(folder, path)}` : word;
};

/** A server used to start in the folder of the agent; these words then named something in it. */
const reliedOn = ([program, ...args]: StdioLaunch['argv'], root: string): readonly string[] => {
  const name = basename(program);
  return args.flatMap((word, at) => {
    const before = args[at - 1];
    const module = word.replaceAll('.', '/');
    const candidates = [
      ...(mayBePath(word) ? [pathIn(word).path] : []),
      ...(before === '-m' ? [`${module}.py`, module] : []),
      ...(/^(npx|bunx|pnpx|npm|pnpm|yarn)$/.test(name) ? [`node_modules/.bin/${word}`] : []),
    ];
    return candidates.filter((path) => !path.startsWith('-') && isBelow(path, root)).slice(0, 1);
  });
};

const hintOf = (argv: StdioLaunch['argv'], root: string): string | null => {
  const [found] = reliedOn(argv, root);
  return found === undefined
    ? null
    : `it starts in an empty folder, not in the project, so ${found} there is not found by itself; name a committed file by its path in args, or install the program`;
};

/** The launch with paths in the user's commit. @throws McpError where agents could change that */
const resolvedLaunch = async (
  launch: StdioLaunch,
  { root, usersFiles }: McpSurroundings,
): Promise<{ readonly argv: StdioLaunch['argv']; readonly folder: string | null }> => {
  const { argv } = launch;
  const [program, ...args] = argv;
  const words = program.includes('/') ? argv : args;
  if (!words.some(mayBePath)) return { argv, folder: null };
  if (usersFiles === null) {
    const inside = words.find((word) => mayBePath(word) && isBelow(pathIn(word).path, root));
    if (inside === undefined) return { argv, folder: null };
    throw new McpError(
      `${inside} is in a folder that agents change (workspace.mode: shared, or workspace.merge); name a path outside the project`,
    );
  }
  const folder = await usersFiles();
  const resolved = program.includes('/') ? inFolder(program, folder) : program;
  return { argv: [resolved, ...args.map((word) => inFolder(word, folder))], folder };
};

const openProgram = async (
  { name }: McpServer,
  launch: StdioLaunch,
  around: McpSurroundings,
): Promise<OpenPlace> => {
  const { root, readable, git, sandbox, env, variables } = around;
  const { argv, folder } = await resolvedLaunch(launch, around);
  // Only its own worktree: in a shared folder each command is guarded, and this one never ends.
  const mayWrite = launch.mayWrite && git != null;
  const shown = folder === null ? [] : [folder];
  const program = {
    argv: argv.map((word) => word.replaceAll(`\${${workspaceVariable}}`, root)) as [
      string,
      ...string[],
    ],
    root,
    readable: [
      ...readable,
      ...shown,
      ...launch.readPaths,
      ...programPaths(argv[0], [homedir(), root, ...shown]),
    ],
    git: mayWrite ? git : undefined,
    readOnly: !mayWrite,
    inOwnFolder: true,
    network: around.networkOf({ name, network: launch.network }),
    env: { ...env, [workspaceVariable]: root, ...withVariables(launch.env, variables) },
  };
  return {
    open: openStdio(launch.sandboxed ? sandbox : createNoSandbox(), program),
    roots: [root],
    hint: hintOf(argv, root),
  };
};

/** @throws McpError for a variable that is not set, or a path that agents could change */
export const placeFor = async (server: McpServer, around: McpSurroundings): Promise<OpenPlace> => {
  const { place } = server;
  if (place.kind === 'stdio') return openProgram(server, place, around);
  if (place.kind === 'refused') throw new McpError(place.why);
  const open = openHttp(place.url, withVariables(place.headers, around.variables));
  // Where our folders are is nothing to somebody else's machine.
  return { open, roots: [], hint: null };
};
