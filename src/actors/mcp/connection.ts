import { isJsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { type CleanList, cleanTools } from './clean-tools.ts';
import { createPeer, type Peer, type PeerInput, type Transport } from './peer.ts';
import { type McpCallResult, McpError } from './port.ts';
import { resultText } from './result-text.ts';

/** The newest first; we ask for it. */
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

const openSession = async (peer: Peer, version: string, ms: number, signal: AbortSignal) => {
  const hello = await peer.request(
    'initialize',
    {
      protocolVersion: protocolVersions[0],
      capabilities: { roots: {} },
      clientInfo: { name: 'agent-task-server', version },
    },
    ms,
    signal,
  );
  const { protocolVersion, capabilities } = isJsonObject(hello) ? hello : {};
  if (!protocolVersions.some((known) => known === protocolVersion))
    throw new McpError(`it speaks no version of the protocol that we know`);
  peer.notify('notifications/initialized');
  return isJsonObject(capabilities) && capabilities['tools'] !== undefined;
};

const readToolList = async (peer: Peer, until: number, signal: AbortSignal): Promise<unknown[]> => {
  const all: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    const leftMs = Math.max(1, Math.round(until - performance.now()));
    const params = cursor === undefined ? {} : { cursor };
    const answer = await peer.request('tools/list', params, leftMs, signal);
    const { tools, nextCursor } = isJsonObject(answer) ? answer : {};
    if (!Array.isArray(tools)) throw new McpError('its list of tools is not a list');
    all.push(...tools.slice(0, 1_000));
    if (typeof nextCursor !== 'string' || nextCursor === '') return all;
    cursor = nextCursor;
  }
  return all;
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

/** A server that did not answer in time, and answers no ping either, is given up. */
const callServerTool =
  (peer: Peer): McpConnection['call'] =>
  async (name, args, ms, signal) => {
    const params = { name, arguments: args };
    const answer = peer.request('tools/call', params, ms, signal);
    const result = await answer.catch(async (error: unknown) => {
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
    const until = performance.now() + startMs;
    const hasTools = await openSession(peer, version, startMs, signal);
    const listed = hasTools ? await readToolList(peer, until, signal) : [];
    return {
      ...cleanTools(server, listed),
      call: callServerTool(peer),
      over: peer.over,
      close: peer.close,
    };
  } catch (error) {
    await peer.close();
    if (place.hint === null || signal.aborted) throw error;
    throw new McpError(`${messageOf(error)}; ${place.hint}`);
  }
};
