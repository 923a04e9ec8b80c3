import { setTimeout as delay } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { dayMs } from '../../machines/milliseconds.ts';
import { createPeer, type Peer, type PeerInput, type Transport } from './peer.ts';
import { type McpCallResult, McpError } from './port.ts';
import {
  afterDiscover,
  answersToInput,
  type HeaderParameter,
  headerParameters,
  statelessHeaders,
  statelessMeta,
  statelessVersion,
} from './stateless.ts';
import { type CleanList, cleanTools, resultText, visibleText } from './tool-list.ts';

/** The versions with `initialize`, the newest first; we ask for it. */
export const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

const maxPages = 20;
const pingMs = 3_000;

/** Within this time a subscription counts as lost at once. */
const shortSubscriptionMs = 60_000;
const shortSubscriptionsAtMost = 5;
const resubscribeMs = 1_000;
const longestSubscriptionMs = 7 * dayMs;

/** A conversation with a server that said hello and listed its tools: the list as last read. */
export interface McpConnection extends CleanList {
  /** True when the list may have changed since it was read. */
  isStale(): boolean;
  /** Reads the list again; tools that stay keep their order. @throws McpError; the old list stays */
  reload(ms: number, signal: AbortSignal): Promise<void>;
  /** A failure of the tool is a result. @throws McpError when there is no result */
  call(tool: string, args: object, ms: number, signal: AbortSignal): Promise<McpCallResult>;
  over(): string | null;
  close(): Promise<void>;
}

/** A conversation whose version is known. */
interface Session {
  readonly isStateless: boolean;
  readonly hasTools: boolean;
  /** True for a server that tells when its list changes. */
  readonly tellsChanges: boolean;
  request(
    method: string,
    params: JsonObject,
    limits: Limits,
    parameters?: readonly HeaderParameter[],
  ): Promise<unknown>;
}

interface Limits {
  /** As of `performance.now()`. */
  readonly until: number;
  readonly signal: AbortSignal;
}

const leftMs = ({ until }: Limits): number => Math.max(1, Math.round(until - performance.now()));

/** The answer of a server to a greeting, as far as it is about tools. */
const toolSupport = (hello: unknown): Pick<Session, 'hasTools' | 'tellsChanges'> => {
  const { capabilities } = isJsonObject(hello) ? hello : {};
  const { tools } = isJsonObject(capabilities) ? capabilities : {};
  return {
    hasTools: tools !== undefined,
    tellsChanges: isJsonObject(tools) && tools['listChanged'] === true,
  };
};

const initialize = async (peer: Peer, version: string, limits: Limits): Promise<Session> => {
  const hello = await peer.request(
    'initialize',
    {
      protocolVersion: protocolVersions[0],
      capabilities: { roots: {} },
      clientInfo: { name: 'agent-task-server', version },
    },
    leftMs(limits),
    limits.signal,
  );
  const { protocolVersion } = isJsonObject(hello) ? hello : {};
  if (!protocolVersions.some((known) => known === protocolVersion))
    throw new McpError(`it speaks no version of the protocol that we know`);
  peer.notify('notifications/initialized');
  peer.listen();
  return {
    isStateless: false,
    ...toolSupport(hello),
    request: (method, params, limits) =>
      peer.request(method, params, leftMs(limits), limits.signal),
  };
};

/** Null for an older server, which may answer any method with something. */
const discover = async (
  peer: Peer,
  version: string,
  roots: readonly string[],
  limits: Limits,
): Promise<Session | null> => {
  const _meta = statelessMeta(version, roots);
  const request: Session['request'] = (method, params, limits, parameters) =>
    peer.request(
      method,
      { ...params, _meta },
      leftMs(limits),
      limits.signal,
      statelessHeaders(method, params, parameters),
    );
  const hello = await request('server/discover', {}, limits);
  const { supportedVersions } = isJsonObject(hello) ? hello : {};
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(statelessVersion))
    return null;
  return { isStateless: true, ...toolSupport(hello), request };
};

/** How long a program may take for `server/discover` (ms): some older ones never answer it. */
const discoverMs = 5_000;

/** A program that started slowly may have read `server/discover` after we gave it up. */
const initializeProgram = async (
  asOld: () => Promise<Session>,
  asNew: () => Promise<Session | null>,
) =>
  asOld().catch(async (error: unknown) => {
    // Which error a server of 2026-07-28 gives to `initialize` is its own choice.
    const isAnswer = error instanceof McpError && error.facts.code !== undefined;
    const session = isAnswer ? await asNew().catch(() => null) : null;
    if (session === null) throw error;
    return session;
  });

/** Asks for the newest version first; an older server refuses that, or says nothing. */
const openSession = async (
  peer: Peer,
  version: string,
  roots: readonly string[],
  limits: Limits,
): Promise<Session> => {
  const asNew = (within = limits) => discover(peer, version, roots, within);
  const asOld = () => initialize(peer, version, limits);
  if (!peer.isProgram) {
    const session = await asNew().catch((error: unknown) => {
      const next = afterDiscover(error);
      if (next === 'fails') throw error;
      return next === 'again' ? asNew() : null;
    });
    return session ?? asOld();
  }
  const until = performance.now() + Math.min(discoverMs, leftMs(limits) / 2);
  const session = await asNew({ ...limits, until }).catch((error: unknown) => {
    if (peer.over() !== null || limits.signal.aborted) throw error;
    return afterDiscover(error) === 'again' ? asNew() : null;
  });
  return session ?? initializeProgram(asOld, asNew);
};

const readToolList = async ({ request }: Session, limits: Limits): Promise<unknown[]> => {
  const all: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await request('tools/list', params, limits);
    const { tools, nextCursor } = isJsonObject(answer) ? answer : {};
    if (!Array.isArray(tools)) throw new McpError('its list of tools is not a list');
    all.push(...tools.slice(0, 1_000));
    if (typeof nextCursor !== 'string' || nextCursor === '') return all;
    cursor = nextCursor;
  }
  return all;
};

interface OfferedTools extends CleanList {
  readonly parameters: ReadonlyMap<string, readonly HeaderParameter[]>;
}

/** Without those whose headers nobody may send. */
const offeredTools = (server: string, listed: readonly unknown[]): OfferedTools => {
  const parameters = new Map<string, readonly HeaderParameter[]>();
  const left: string[] = [];
  const kept = listed.filter((tool) => {
    const { name, inputSchema } = isJsonObject(tool) ? tool : {};
    try {
      const found = headerParameters(inputSchema);
      if (typeof name === 'string' && found.length > 0) parameters.set(name, found);
      return true;
    } catch (error) {
      left.push(`${visibleText(String(name)).slice(0, 40)}: ${messageOf(error)}`);
      return false;
    }
  });
  const clean = cleanTools(server, kept);
  return { tools: clean.tools, left: [...left, ...clean.left], parameters };
};

export interface McpConnectOptions {
  readonly server: string;
  /** The version of this program. */
  readonly version: string;
  /** Time limit of everything before the first call (ms). */
  readonly startMs: number;
  readonly signal: AbortSignal;
  readonly place: OpenPlace;
}

/** How a server is reached. */
export interface OpenPlace {
  readonly open: (input: PeerInput) => Transport;
  /** Folders that it may ask for. */
  readonly roots: readonly string[];
  /** What may be wrong when it does not start; null: nothing is known. */
  readonly hint: string | null;
}

const maxRounds = 4;

/** Calls a tool, and answers what it asks for on the way (2026-07-28). */
const callInRounds = async (
  { request }: Session,
  params: JsonObject,
  { offered }: Peer,
  limits: Limits,
  parameters: readonly HeaderParameter[] | undefined,
): Promise<unknown> => {
  let answers: JsonObject = {};
  for (let round = 0; round < maxRounds; round += 1) {
    const result = await request('tools/call', { ...params, ...answers }, limits, parameters);
    const next = answersToInput(result, offered);
    if (next === null) return result;
    answers = next;
  }
  throw new McpError(`it asks for more input after ${maxRounds} answers`);
};

/** There is no `ping` since 2026-07-28, and over HTTP nothing that could be stuck. */
const pingOrClose = async (
  peer: Peer,
  { isStateless, request }: Session,
  signal: AbortSignal,
): Promise<void> => {
  if (isStateless && !peer.isProgram) return;
  const limits = { until: performance.now() + pingMs, signal };
  const method = isStateless ? 'server/discover' : 'ping';
  await request(method, {}, limits).catch(() => peer.close());
};

/** A server that did not answer in time, and answers no ping either, is given up. */
const callServerTool =
  (
    peer: Peer,
    session: Session,
    parametersOf: (tool: string) => readonly HeaderParameter[] | undefined,
  ): McpConnection['call'] =>
  async (name, args, ms, signal) => {
    const limits = { until: performance.now() + ms, signal };
    const params = { name, arguments: args };
    const call = session.isStateless
      ? callInRounds(session, params, peer, limits, parametersOf(name))
      : peer.request('tools/call', params, ms, signal);
    const result = await call.catch(async (error: unknown) => {
      const isUnanswered = error instanceof McpError && error.facts.code === undefined;
      if (isUnanswered && !signal.aborted && peer.over() === null)
        await pingOrClose(peer, session, signal);
      throw error;
    });
    return resultText(result);
  };

/**
 * Keeps a subscription to changes of the list (2026-07-28; older servers tell them unasked). What
 * changed while there was none is unknown, so its loss counts as a change.
 */
const followChanges = async (
  { request }: Session,
  changes: Changes,
  signal: AbortSignal,
): Promise<void> => {
  const params = { notifications: { toolsListChanged: true } };
  for (let short = 0; short < shortSubscriptionsAtMost; short += 1) {
    const began = performance.now();
    const limits = { until: began + longestSubscriptionMs, signal };
    const lost = await request('subscriptions/listen', params, limits).catch(
      (error: unknown) => error,
    );
    const isRefused = lost instanceof McpError && lost.facts.code !== undefined;
    if (signal.aborted || isRefused) return;
    changes.isStale = true;
    if (performance.now() - began > shortSubscriptionMs) short = 0;
    await delay(resubscribeMs * 2 ** short, undefined, { signal, ref: false });
  }
};

/** Those that were there before keep their order, so that a provider's cache of them holds. */
const inOrderOf = (before: OfferedTools, now: OfferedTools): OfferedTools => {
  const places = new Map(before.tools.map(({ name }, at) => [name, at]));
  const placeOf = (name: string): number => places.get(name) ?? places.size;
  return { ...now, tools: now.tools.toSorted((a, b) => placeOf(a.name) - placeOf(b.name)) };
};

const noTools: OfferedTools = { tools: [], left: [], parameters: new Map() };

/** @throws McpError; then nothing of the server runs any more */
const openConversation = async (
  create: () => Peer,
  version: string,
  roots: readonly string[],
  limits: Limits,
): Promise<{ readonly peer: Peer; readonly session: Session }> => {
  const first = create();
  try {
    return { peer: first, session: await openSession(first, version, roots, limits) };
  } catch (error) {
    const hasEnded = first.isProgram && first.over() !== null;
    await first.close();
    if (!hasEnded || limits.signal.aborted) throw error;
  }
  // Some older programs end at anything but `initialize`.
  const peer = create();
  try {
    return { peer, session: await initialize(peer, version, limits) };
  } catch (error) {
    await peer.close();
    throw error;
  }
};

/** @throws McpError; then nothing of the server runs any more */
interface Conversation {
  readonly peer: Peer;
  readonly session: Session;
  readonly changes: Changes;
}

/** True when the list may have changed since it was read. */
interface Changes {
  isStale: boolean;
}

const createConnection = async (
  server: string,
  { peer, session, changes }: Conversation,
  limits: Limits,
): Promise<McpConnection> => {
  const ends = new AbortController();
  const close = async (): Promise<void> => {
    const closed = peer.close();
    ends.abort();
    await closed;
  };
  let offered = noTools;
  const load = async (limits: Limits): Promise<void> => {
    changes.isStale = false;
    try {
      const listed = session.hasTools ? await readToolList(session, limits) : [];
      const hasHeaders = session.isStateless && !peer.isProgram;
      const now = hasHeaders
        ? offeredTools(server, listed)
        : { ...noTools, ...cleanTools(server, listed) };
      offered = inOrderOf(offered, now);
    } catch (error) {
      changes.isStale = true;
      throw error;
    }
  };
  // Before the list is read, so that no change is missed.
  if (session.isStateless && session.tellsChanges)
    followChanges(session, changes, ends.signal).catch(() => {});
  try {
    await load(limits);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    get tools() {
      return offered.tools;
    },
    get left() {
      return offered.left;
    },
    isStale: () => changes.isStale,
    reload: (ms, signal) => load({ until: performance.now() + ms, signal }),
    call: callServerTool(peer, session, (tool) => offered.parameters.get(tool)),
    over: peer.over,
    close,
  };
};

/** @throws McpError; then nothing of the server runs any more */
export const connectMcp = async (options: McpConnectOptions): Promise<McpConnection> => {
  const { server, version, startMs, signal, place } = options;
  const { open, roots, hint } = place;
  const changes = { isStale: false };
  const onNotification = (method: string): void => {
    changes.isStale ||= method === 'notifications/tools/list_changed';
  };
  const create = (): Peer => createPeer(open, { roots, onNotification });
  const limits = { until: performance.now() + startMs, signal };
  try {
    const opened = await openConversation(create, version, roots, limits);
    return await createConnection(server, { ...opened, changes }, limits);
  } catch (error) {
    const isLate = performance.now() >= limits.until;
    if ((hint === null && !isLate) || signal.aborted) throw error;
    const why = isLate ? `no answer within ${startMs / 1_000} s` : messageOf(error);
    throw new McpError(hint === null ? why : `${why}; ${hint}`);
  }
};
