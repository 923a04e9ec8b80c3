import { isJsonObject, type JsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
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

/** A conversation with a server that said hello and listed its tools. */
export interface McpConnection extends CleanList {
  /** A failure of the tool is a result. @throws McpError when there is no result */
  call(tool: string, args: object, ms: number, signal: AbortSignal): Promise<McpCallResult>;
  over(): string | null;
  close(): Promise<void>;
}

/** A conversation whose version is known. */
interface Session {
  readonly isStateless: boolean;
  readonly hasTools: boolean;
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

const capabilitiesOf = (hello: unknown): JsonObject => {
  const { capabilities } = isJsonObject(hello) ? hello : {};
  return isJsonObject(capabilities) ? capabilities : {};
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
    hasTools: capabilitiesOf(hello)['tools'] !== undefined,
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
  return { isStateless: true, hasTools: capabilitiesOf(hello)['tools'] !== undefined, request };
};

/** Asks for the newest version that a server speaks, in the order that its transport wants. */
const openSession = async (
  peer: Peer,
  version: string,
  roots: readonly string[],
  limits: Limits,
): Promise<Session> => {
  const asNew = () => discover(peer, version, roots, limits);
  const asOld = () => initialize(peer, version, limits);
  if (peer.first === 'initialize')
    return asOld().catch(async (error: unknown) => {
      // Which error a server of 2026-07-28 gives to `initialize` is its own choice.
      const isAnswer = error instanceof McpError && error.facts.code !== undefined;
      const session = isAnswer ? await asNew().catch(() => null) : null;
      if (session === null) throw error;
      return session;
    });
  const session = await asNew().catch((error: unknown) => {
    const next = afterDiscover(error);
    if (next === 'fails') throw error;
    return next === 'again' ? asNew() : null;
  });
  return session ?? asOld();
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

/** A server that did not answer in time, and answers no ping either, is given up. */
const callServerTool =
  (peer: Peer, session: Session, parameters: OfferedTools['parameters']): McpConnection['call'] =>
  async (name, args, ms, signal) => {
    const limits = { until: performance.now() + ms, signal };
    const params = { name, arguments: args };
    if (session.isStateless)
      return resultText(await callInRounds(session, params, peer, limits, parameters.get(name)));
    const result = await peer
      .request('tools/call', params, ms, signal)
      .catch(async (error: unknown) => {
        if (!signal.aborted && peer.over() === null)
          await peer.request('ping', {}, pingMs, signal).catch(() => peer.close());
        throw error;
      });
    return resultText(result);
  };

/** @throws McpError; then nothing of the server runs any more */
export const connectMcp = async (options: McpConnectOptions): Promise<McpConnection> => {
  const { server, version, startMs, signal, place } = options;
  const peer = createPeer(place.open, place.roots);
  try {
    const limits = { until: performance.now() + startMs, signal };
    const session = await openSession(peer, version, place.roots, limits);
    const listed = session.hasTools ? await readToolList(session, limits) : [];
    const { tools, left, parameters } =
      session.isStateless && peer.first === 'server/discover'
        ? offeredTools(server, listed)
        : { ...cleanTools(server, listed), parameters: new Map() };
    return {
      tools,
      left,
      call: callServerTool(peer, session, parameters),
      over: peer.over,
      close: peer.close,
    };
  } catch (error) {
    await peer.close();
    if (place.hint === null || signal.aborted) throw error;
    throw new McpError(`${messageOf(error)}; ${place.hint}`);
  }
};
