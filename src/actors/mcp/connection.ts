import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { keepHead } from '../process/head-tail-buffer.ts';
import { createPeer, type Peer, type PeerInput, type Transport } from './peer.ts';
import { type McpCallResult, McpError, type McpTool, mcpPrefix } from './port.ts';
import {
  afterDiscover,
  answersToInput,
  type HeaderParameter,
  headerParameters,
  statelessHeaders,
  statelessMeta,
  statelessVersion,
} from './stateless.ts';

/** The limits of one server: what exceeds them is left out, and the reason is told. */
const maxTools = 128;
const maxDescriptionBytes = 4 * 1024;
const maxSchemaBytes = 32 * 1024;
const maxListBytes = 256 * 1024;
const maxDepth = 16;
/** Providers refuse longer names. */
const toolNameLength = 64;

/** Without control and invisible characters, which could hide words from people. */
export const visibleText = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]+|[\p{Cf}\p{Co}\p{Cs}]+/gu, '');

const keptValues: ReadonlySet<string> = new Set([
  ...['type', 'title', 'description', 'default', 'enum', 'const', 'examples', 'format', 'pattern'],
  ...['required', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems', '$ref'],
]);
const schemaMaps: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
const schemaLists: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const typeNames = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

const cleanValue = (value: unknown, depth: number): unknown => {
  if (depth > maxDepth) return null;
  if (typeof value === 'string') return visibleText(value);
  if (Array.isArray(value)) return value.map((each) => cleanValue(each, depth + 1));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [visibleText(key), cleanValue(each, depth + 1)]),
  );
};

const isType = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isType) : typeNames.some((name) => name === value);

const cleanKeyword = (key: string, value: unknown, depth: number): unknown => {
  if (schemaMaps.has(key) && isJsonObject(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        visibleText(name),
        cleanSchema(each, depth + 1),
      ]),
    );
  if (schemaLists.has(key) && Array.isArray(value))
    return value.map((each) => cleanSchema(each, depth + 1));
  if (key === 'items') return cleanSchema(value, depth + 1);
  if (key === 'additionalProperties')
    return typeof value === 'boolean' ? value : cleanSchema(value, depth + 1);
  if (key === 'type') return isType(value) ? value : undefined;
  if (key === '$ref') return typeof value === 'string' && value.startsWith('#') ? value : undefined;
  return keptValues.has(key) ? cleanValue(value, depth) : undefined;
};

/** The keywords that providers know: one refuses a whole request over a schema that it does not. */
const cleanSchema = (schema: unknown, depth = 0): JsonObject => {
  if (!isJsonObject(schema) || depth > maxDepth) return {};
  return Object.fromEntries(
    Object.entries(schema)
      .map(([key, value]) => [key, cleanKeyword(key, value, depth)] as const)
      .filter(([, value]) => value !== undefined),
  );
};

/** Providers want an object at the top, without alternatives. */
const cleanParameters = (schema: unknown): JsonObject => {
  const { anyOf: _, oneOf: __, allOf: ___, enum: ____, $ref: _____, ...top } = cleanSchema(schema);
  return {
    ...top,
    type: 'object',
    properties: isJsonObject(top['properties']) ? top['properties'] : {},
  };
};

const sortedKeys = (_: string, value: unknown): unknown =>
  isJsonObject(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const toolHash = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value, sortedKeys)).digest('hex');

/** @returns null for a name that no person could read */
const modelName = (server: string, tool: string): string | null => {
  if (!/^[\w./ :@-]{1,128}$/.test(tool)) return null;
  const name = `${mcpPrefix}${server}__${tool.replace(/[^\w-]/g, '_')}`;
  return name.length <= toolNameLength
    ? name
    : `${name.slice(0, toolNameLength - 9)}_${toolHash(tool).slice(0, 8)}`;
};

const cleanTool = (server: string, given: unknown): McpTool | string => {
  const { name: tool, description = '', inputSchema } = isJsonObject(given) ? given : {};
  if (typeof tool !== 'string') return 'a tool without a name';
  const name = modelName(server, tool);
  if (name === null)
    return `a tool whose name is not plain text (${visibleText(tool).replace(/\s/g, ' ').slice(0, 40)})`;
  const parameters = cleanParameters(inputSchema);
  if (JSON.stringify(parameters).length > maxSchemaBytes)
    return `${name}, whose arguments are described in more than ${maxSchemaBytes / 1024} KiB`;
  const said = typeof description === 'string' ? visibleText(description).trim() : '';
  const shown = `[of the MCP server ${server}] ${keepHead(said, maxDescriptionBytes)}`.trim();
  return {
    ...{ name, server, tool, parameters, description: shown },
    fingerprint: toolHash([tool, shown, parameters]),
  };
};

interface CleanList {
  readonly tools: readonly McpTool[];
  /** The tools that were left out, each with the reason. */
  readonly left: readonly string[];
}

/**
 * Keeps the part of a server's list that a model may see. A name that is taken stays with its first
 * tool.
 */
export const cleanTools = (server: string, given: readonly unknown[]): CleanList => {
  const tools: McpTool[] = [];
  const left: string[] = [];
  let bytes = 0;
  for (const each of given) {
    const tool = cleanTool(server, each);
    if (typeof tool === 'string') {
      left.push(tool);
      continue;
    }
    const size = JSON.stringify([tool.description, tool.parameters]).length;
    if (tools.some(({ name }) => name === tool.name)) left.push(`a second ${tool.name}`);
    else if (tools.length >= maxTools || bytes + size > maxListBytes)
      left.push(`${tool.name}: the list is too long`);
    else {
      bytes += size;
      tools.push(tool);
    }
  }
  return { tools, left };
};

const contentSize = (data: unknown): string =>
  typeof data === 'string' ? `${Math.ceil((data.length * 3) / 4)} bytes` : 'no data';

/** One part of a result; a model gets no pictures and no sound. */
const partText = (part: unknown): string => {
  if (!isJsonObject(part)) return '';
  const { type, text, data, mimeType, uri, resource } = part;
  if (type === 'text') return typeof text === 'string' ? text : '';
  if (type === 'resource' && isJsonObject(resource)) {
    const { text: content, blob } = resource;
    if (typeof content === 'string') return content;
    return `[resource ${String(resource['uri'])}, ${contentSize(blob)}, is not shown]`;
  }
  if (type === 'resource_link') return `[resource ${String(uri)}]`;
  return `[${String(type)}, ${String(mimeType)}, ${contentSize(data)}, is not shown]`;
};

/** The result of `tools/call`, as a model reads it. */
export const resultText = (result: unknown): McpCallResult => {
  const { content, structuredContent, isError } = isJsonObject(result) ? result : {};
  const parts = Array.isArray(content) ? content.map(partText).filter((text) => text !== '') : [];
  const structured =
    parts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : '';
  return { ok: isError !== true, text: parts.join('\n') || structured || '(no output)' };
};

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
