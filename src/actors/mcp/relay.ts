import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isJsonObject } from '../../machines/json.ts';
import { protocolVersions } from './connection.ts';
import { maxMessageLength } from './peer.ts';
import type { HandedServer, McpServer, McpTool } from './port.ts';
import type { McpServers } from './servers.ts';

/** The servers of an attempt as its assistant gets them: over HTTP, on this machine. */
export interface Relay {
  readonly servers: readonly HandedServer[];
  close(): Promise<void>;
}

interface RelayOptions {
  readonly servers: McpServers;
  readonly offered: readonly Pick<McpServer, 'name' | 'startMs' | 'callMs'>[];
  /** The version of this program. */
  readonly version: string;
  /** For the person who reads the log of the task. */
  readonly warn: (message: string) => void;
}

interface RelayedCall {
  readonly id: string | number | undefined;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const relayConnectionsAtMost = 100;
/** Keeps a connection that waits for a long call. */
const relayHeartbeatMs = 15_000;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const hasToken = ({ headers }: IncomingMessage, token: string): boolean =>
  timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${token}`));

/** Null for what is no call. */
const readCall = async (request: IncomingMessage): Promise<RelayedCall | null> => {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > maxMessageLength) return null;
  }
  try {
    const given: unknown = JSON.parse(text);
    if (!isJsonObject(given) || typeof given['method'] !== 'string') return null;
    const { id, method, params } = given;
    const isId = typeof id === 'string' || typeof id === 'number';
    return { id: isId ? id : undefined, method, params: isJsonObject(params) ? params : {} };
  } catch {
    return null;
  }
};

const failedCall = (text: string) => ({ content: [{ type: 'text', text }], isError: true });

const changedToolsText = (names: readonly string[], server: string): string =>
  `the MCP server ${server}: ${names.join(', ')} left out: not as you have known it; see and allow it: agent mcp --allow ${server}`;

/** Answers a call as a server does; null for an unknown method. */
const createRelayAnswers = ({ servers, version }: RelayOptions) => {
  const toolsOf = (server: string): readonly McpTool[] =>
    servers.tools().filter((tool) => tool.server === server);
  const offeredBy = (server: string): readonly McpTool[] =>
    toolsOf(server).filter(({ name }) => servers.changeOf(name) === null);

  const callTool = async (server: string, params: RelayedCall['params'], signal: AbortSignal) => {
    const tool = toolsOf(server).find((each) => each.tool === params['name']);
    if (tool === undefined) return failedCall(`there is no tool ${String(params['name'])}`);
    // Nobody can be asked: it changed while the assistant works.
    if (servers.changeOf(tool.name) !== null)
      return failedCall(changedToolsText([tool.tool], server));
    const args = isJsonObject(params['arguments']) ? params['arguments'] : {};
    const { ok, text } = await servers.call(tool.name, args, { allowed: null, signal });
    return { content: [{ type: 'text', text }], isError: !ok };
  };
  const answer = async (server: string, { method, params }: RelayedCall, signal: AbortSignal) => {
    const wanted = protocolVersions.find((known) => known === params['protocolVersion']);
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: wanted ?? protocolVersions[0],
          capabilities: { tools: {} },
          serverInfo: { name: server, version },
        };
      case 'ping':
        return {};
      case 'tools/list':
        return {
          tools: offeredBy(server).map(({ tool, description, parameters }) => ({
            name: tool,
            description,
            inputSchema: { type: 'object', ...parameters },
          })),
        };
      case 'tools/call':
        return callTool(server, params, signal);
      default:
        return null;
    }
  };
  return { toolsOf, offeredBy, answer };
};

/** A client that can read events gets its answer as one: comments keep a long call alive. */
const openAnswer = ({ headers }: IncomingMessage, response: ServerResponse) => {
  if (!String(headers.accept).includes('text/event-stream'))
    return (body: string): void =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  const own = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
  response.writeHead(200, own).flushHeaders();
  const beating = setInterval(() => response.write(': waits\n\n'), relayHeartbeatMs);
  response.once('close', () => clearInterval(beating));
  return (body: string): void => void response.end(`event: message\ndata: ${body}\n\n`);
};

/**
 * Stands between an assistant and the user's servers, so that what the user configured for each of
 * them holds: sandbox, network, workspace, tools, time limits, and the list as it was first seen.
 */
export const openRelay = async (options: RelayOptions): Promise<Relay> => {
  const { servers, offered, warn } = options;
  const { toolsOf, offeredBy, answer } = createRelayAnswers(options);
  const known = new Set(offered.map(({ name }) => name));
  const token = randomBytes(32).toString('base64url');

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const server = (request.url ?? '').slice('/'.length);
    const refuse = (code: number): void => void response.writeHead(code).end();
    if (!hasToken(request, token)) return refuse(401);
    if (!known.has(server)) return refuse(404);
    if (request.method !== 'POST') return refuse(405);
    const call = await readCall(request);
    if (call === null) return refuse(400);
    if (call.id === undefined) return refuse(202);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const finish = openAnswer(request, response);
    const result = await answer(server, call, gone.signal);
    const end =
      result === null ? { error: { code: -32601, message: 'unknown method' } } : { result };
    finish(JSON.stringify({ jsonrpc: '2.0', id: call.id, ...end }));
  };

  const http = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  http.maxConnections = relayConnectionsAtMost;
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  for (const { name } of offered) {
    const left = toolsOf(name).filter((tool) => !offeredBy(name).includes(tool));
    if (left.length > 0)
      warn(
        changedToolsText(
          left.map(({ tool }) => tool),
          name,
        ),
      );
  }
  return {
    servers: offered
      .filter(({ name }) => toolsOf(name).length > 0)
      .map(({ name, startMs, callMs }) => ({
        name,
        startMs,
        callMs,
        url: `http://127.0.0.1:${port}/${name}`,
        token,
      })),
    close: async () => {
      http.closeAllConnections();
      http.close();
      await servers.close();
    },
  };
};
