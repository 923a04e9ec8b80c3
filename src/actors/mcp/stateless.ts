import { isJsonObject, type JsonObject } from '../../machines/json.ts';
import { McpError } from './port.ts';

/** The version without sessions: each request says who asks, and what that client can do. */
export const statelessVersion = '2026-07-28';

const unsupportedVersion = -32_022;
/** Errors that only a server of 2026-07-28 or later gives: its headers, capabilities, versions. */
const statelessErrors: ReadonlySet<number> = new Set([-32_020, -32_021, unsupportedVersion]);

const refusalsOfUser: ReadonlySet<number> = new Set([401, 403, 429]);

/** What the failure of `server/discover` says of a server. */
export const afterDiscover = (error: unknown): 'again' | 'initialize' | 'fails' => {
  if (!(error instanceof McpError)) return 'fails';
  const { code, status, data } = error.facts;
  if (code === unsupportedVersion) {
    const { supported } = isJsonObject(data) ? data : {};
    if (!Array.isArray(supported)) return 'initialize';
    return supported.includes(statelessVersion) ? 'again' : 'initialize';
  }
  if (code !== undefined) return statelessErrors.has(code) ? 'fails' : 'initialize';
  const isRefused = status !== undefined && status >= 400 && status < 500;
  return isRefused && !refusalsOfUser.has(status) ? 'initialize' : 'fails';
};

export const statelessMeta = (version: string, roots: readonly string[]) => ({
  'io.modelcontextprotocol/protocolVersion': statelessVersion,
  'io.modelcontextprotocol/clientInfo': { name: 'agent-task-server', version },
  'io.modelcontextprotocol/clientCapabilities': roots.length === 0 ? {} : { roots: {} },
});

const encodedStart = '=?base64?';

/** A header holds visible ASCII; other text travels as base64. */
const headerValue = (text: string): string => {
  const isPlain = /^[\t\x20-\x7e]*$/.test(text) && text.trim() === text;
  const looksEncoded = text.startsWith(encodedStart) && text.endsWith('?=');
  return isPlain && !looksEncoded
    ? text
    : `${encodedStart}${Buffer.from(text, 'utf8').toString('base64')}?=`;
};

/** A parameter whose value a header repeats (`x-mcp-header`). */
export interface HeaderParameter {
  readonly header: string;
  readonly path: readonly string[];
}

const annotation = 'x-mcp-header';
const maxDepth = 16;
const plainTypes = ['string', 'integer', 'boolean'];
/** Keywords that hold values, not schemas. */
const valueKeywords: ReadonlySet<string> = new Set(['default', 'enum', 'const', 'examples']);

const annotatedParameter = (
  schema: JsonObject,
  path: readonly string[] | null,
): HeaderParameter => {
  const { [annotation]: header, type } = schema;
  if (path === null || path.length === 0)
    throw new McpError('a header for a value that has no fixed place');
  if (typeof header !== 'string' || !/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(header))
    throw new McpError('a header whose name is not a token');
  if (!plainTypes.some((plain) => plain === type))
    throw new McpError('a header for a value that is no text, integer or boolean');
  return { header: `Mcp-Param-${header}`, path };
};

/** `path`: null where a value has no fixed place. */
const parametersIn = (
  schema: unknown,
  path: readonly string[] | null,
  depth: number,
): readonly HeaderParameter[] => {
  if (depth > maxDepth) return [];
  if (Array.isArray(schema)) return schema.flatMap((each) => parametersIn(each, null, depth + 1));
  if (!isJsonObject(schema)) return [];
  const below = Object.entries(schema).flatMap(([key, value]) => {
    if (valueKeywords.has(key)) return [];
    if (key !== 'properties' || !isJsonObject(value)) return parametersIn(value, null, depth + 1);
    return Object.entries(value).flatMap(([name, each]) =>
      parametersIn(each, path === null ? null : [...path, name], depth + 1),
    );
  });
  return annotation in schema ? [annotatedParameter(schema, path), ...below] : below;
};

/** @throws McpError for a tool that may not be offered over HTTP */
export const headerParameters = (inputSchema: unknown): readonly HeaderParameter[] => {
  const found = parametersIn(inputSchema, [], 0);
  const names = new Set(found.map(({ header }) => header.toLowerCase()));
  if (names.size < found.length) throw new McpError('two headers of the same name');
  return found;
};

const valueAt = (args: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, key) => (isJsonObject(value) ? value[key] : undefined), args);

const isPlainValue = (value: unknown): boolean =>
  ['string', 'boolean'].includes(typeof value) || Number.isSafeInteger(value);

/** The headers that repeat a request, for proxies that do not read it. */
export const statelessHeaders = (
  method: string,
  params: JsonObject,
  parameters: readonly HeaderParameter[] = [],
): Readonly<Record<string, string>> => {
  const { name, arguments: args } = params;
  const repeated = parameters.flatMap(({ header, path }) => {
    const value = valueAt(args, path);
    return isPlainValue(value) ? [[header, headerValue(String(value))] as const] : [];
  });
  return {
    'MCP-Protocol-Version': statelessVersion,
    'Mcp-Method': method,
    ...(typeof name === 'string' ? { 'Mcp-Name': headerValue(name) } : {}),
    ...Object.fromEntries(repeated),
  };
};

const maxQuestions = 20;

/**
 * What a result that needs input is answered with: the roots, and a refusal of each question to a
 * person. Null for a result that is complete. @throws McpError for what this client does not offer
 */
export const answersToInput = (
  result: unknown,
  offered: Readonly<Record<string, object>>,
): JsonObject | null => {
  const { resultType, inputRequests, requestState } = isJsonObject(result) ? result : {};
  if (resultType === undefined || resultType === 'complete') return null;
  if (resultType !== 'input_required')
    throw new McpError('it answers with a kind of result that we do not know');
  const requests = Object.entries(isJsonObject(inputRequests) ? inputRequests : {});
  if (requests.length > maxQuestions)
    throw new McpError(`it asks for more than ${maxQuestions} things at once`);
  const answers = requests.map(([key, request]) => {
    const { method } = isJsonObject(request) ? request : {};
    const answer =
      typeof method === 'string' && Object.hasOwn(offered, method) ? offered[method] : undefined;
    if (answer === undefined)
      throw new McpError('it asks for something that this client does not offer');
    return [key, answer] as const;
  });
  return {
    ...(requests.length === 0 ? {} : { inputResponses: Object.fromEntries(answers) }),
    ...(typeof requestState === 'string' ? { requestState } : {}),
  };
};
