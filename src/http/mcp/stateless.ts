import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import type { McpBackend, McpCall } from './backend.ts';
import {
  answerRequest,
  instructions,
  type McpIdentity,
  McpRequestError,
  mcpErrors,
  serverCapabilities,
  serverMethods,
} from './requests.ts';

/** The versions without `initialize`, where each request names its version and capabilities. */
const statelessVersions = ['2026-07-28'];

const metaKey = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  server: 'io.modelcontextprotocol/serverInfo',
} as const;

const paramsSchema = z.looseObject({ _meta: z.record(z.string(), z.unknown()) });

interface Message {
  readonly method: string;
  readonly params?: unknown;
}

const metaOf = (params: unknown): Readonly<Record<string, unknown>> =>
  paramsSchema.safeParse(params).data?._meta ?? {};

const discover = 'server/discover';

/** Whether a message follows the rules of 2026-07-28 and later, at least by its own word. */
export const isStatelessRequest = ({ method, params }: Message): boolean =>
  method === discover || metaKey.version in metaOf(params);

export const isStatelessVersion = (version: unknown): boolean =>
  statelessVersions.some((known) => known === version);

const missingMeta = (key: string): McpRequestError =>
  new McpRequestError(mcpErrors.invalidParams, `invalid params: _meta needs ${key}`);

const problemOfVersion = (version: string): McpRequestError | null =>
  isStatelessVersion(version)
    ? null
    : new McpRequestError(
        mcpErrors.unsupportedVersion,
        `version ${version.slice(0, 40)} of MCP is not supported; send one of data.supported`,
        { supported: statelessVersions, requested: version.slice(0, 40) },
      );

const problemOfMethod = (method: string): McpRequestError | null =>
  method === discover || serverMethods.has(method)
    ? null
    : new McpRequestError(mcpErrors.unknownMethod, `unknown method ${method.slice(0, 100)}`);

/** Null for a request whose metadata and method are right. */
const statelessProblem = ({ method, params }: Message): McpRequestError | null => {
  const { [metaKey.version]: version, [metaKey.capabilities]: capabilities } = metaOf(params);
  if (typeof version !== 'string') return missingMeta(metaKey.version);
  const problem = problemOfVersion(version);
  if (problem !== null) return problem;
  if (typeof capabilities !== 'object' || capabilities === null)
    return missingMeta(metaKey.capabilities);
  return problemOfMethod(method);
};

/** The member of the params that the header `Mcp-Name` repeats. */
const namedBy: ReadonlyMap<string, 'name' | 'uri'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
]);

const encodedStart = '=?base64?';
const encodedEnd = '?=';

/** A value that no header can hold is sent as base64. Null: it is no base64. */
const decodedHeader = (value: string): string | null => {
  if (!value.startsWith(encodedStart) || !value.endsWith(encodedEnd)) return value;
  const encoded = value.slice(encodedStart.length, -encodedEnd.length);
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.toString('base64') === encoded ? bytes.toString('utf8') : null;
};

const headerMismatch = (header: string): McpRequestError =>
  new McpRequestError(
    mcpErrors.headerMismatch,
    `the header ${header} must be there and repeat what the message says`,
  );

/** What a proxy decides by a header must be true of the message, too. */
const problemOfHeaders = (
  headers: IncomingHttpHeaders,
  { method, params }: Message,
): McpRequestError | null => {
  const { [metaKey.version]: version } = metaOf(params);
  // Without a version in the message there is nothing to compare; that is refused by itself.
  if (version === undefined) return null;
  if (headers['mcp-protocol-version'] !== version) return headerMismatch('MCP-Protocol-Version');
  if (!isStatelessVersion(version)) return null;
  if (headers['mcp-method'] !== method) return headerMismatch('Mcp-Method');
  const named = namedBy.get(method);
  if (named === undefined) return null;
  const { data } = z.looseObject({ [named]: z.string() }).safeParse(params);
  const given = headers['mcp-name'];
  const isSame = typeof given === 'string' && decodedHeader(given) === data?.[named];
  return data === undefined || isSame ? null : headerMismatch('Mcp-Name');
};

/** Why a request over HTTP is refused before anything of it is done, or null. */
export const statelessHttpProblem = (
  headers: IncomingHttpHeaders,
  message: Message,
): McpRequestError | null => problemOfHeaders(headers, message) ?? statelessProblem(message);

/** How long a client may keep an answer (ms). Resources are tasks, which change at any time. */
const keptMs: ReadonlyMap<string, number> = new Map([
  [discover, 60_000],
  ['tools/list', 60_000],
  ['resources/templates/list', 60_000],
  ['resources/list', 0],
  ['resources/read', 0],
]);

/** A result with what 2026-07-28 adds to it. Answers depend on the token, so none is public. */
const statelessResult = (
  method: string,
  { name, version }: McpIdentity,
  result: object,
): object => {
  const ttlMs = keptMs.get(method);
  return {
    ...result,
    resultType: 'complete',
    ...(ttlMs === undefined ? {} : { ttlMs, cacheScope: 'private' }),
    _meta: { [metaKey.server]: { name, title: 'Agent Task Server', version } },
  };
};

const discoverAnswer = {
  supportedVersions: statelessVersions,
  capabilities: serverCapabilities,
  instructions,
};

/** @throws McpError; an unknown resource is a wrong parameter since 2026-07-28 */
export const answerStateless = async (
  backend: McpBackend,
  identity: McpIdentity,
  call: McpCall,
  message: Message,
): Promise<object> => {
  const problem = statelessProblem(message);
  if (problem !== null) throw problem;
  const { method, params } = message;
  if (method === discover) return statelessResult(method, identity, discoverAnswer);
  try {
    return statelessResult(method, identity, await answerRequest(backend, call, method, params));
  } catch (error) {
    if (!(error instanceof McpRequestError) || error.code !== mcpErrors.resourceNotFound)
      throw error;
    throw new McpRequestError(mcpErrors.invalidParams, error.message, error.data);
  }
};
