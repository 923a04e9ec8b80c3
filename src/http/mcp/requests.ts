import { z } from 'zod';
import { roles } from '../../machines/task.ts';
import type { Identity } from '../discovery.ts';
import { parseWithProblems } from '../schema-problems.ts';
import type { McpBackend, McpCall } from './backend.ts';
import { callTool, listTools, mcpToolNames, withAdvice } from './tools.ts';

const resourcePageSchema = z.looseObject({
  tasks: z.array(
    z.looseObject({ task_id: z.string(), title: z.string(), result: z.string().optional() }),
  ),
  next_cursor: z.string().optional(),
});
const resourcesPerPage = 100;

const taskUri = (id: string): string => `task://${encodeURIComponent(id)}`;

const listResources = async ({ call }: McpBackend, cursor: string | undefined) => {
  const page = await call('list', {
    limit: resourcesPerPage,
    ...(cursor === undefined ? {} : { cursor }),
  });
  const { tasks, next_cursor } = resourcePageSchema.parse(page);
  const resources = tasks.flatMap(({ task_id, title, result }) => [
    { uri: taskUri(task_id), name: task_id, title, mimeType: 'application/json' },
    ...(result === undefined
      ? []
      : [
          {
            uri: `${taskUri(task_id)}/result`,
            name: `${task_id} result`,
            title: `Result of ${task_id}: ${title}`,
            mimeType: 'text/markdown',
          },
        ]),
  ]);
  return { resources, ...(next_cursor === undefined ? {} : { nextCursor: next_cursor }) };
};

const resourceTemplates = {
  resourceTemplates: [
    {
      uriTemplate: 'task://{task_id}',
      name: 'task',
      title: 'A task as it is now',
      mimeType: 'application/json',
    },
    {
      uriTemplate: 'task://{task_id}/result',
      name: 'result',
      title: 'What the agent says of a complete task',
      mimeType: 'text/markdown',
    },
  ],
};

const decodedOrNull = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

/** Null for an unknown address, and for a result that is not there yet. */
const readResource = async ({ call }: McpBackend, uri: string): Promise<object | null> => {
  const match = /^task:\/\/([^/?#]+)(\/result)?$/.exec(uri);
  const id = match?.[1] === undefined ? null : decodedOrNull(match[1]);
  if (id === null) return null;
  const task = await call('status', { task_id: id });
  if (match?.[2] === undefined)
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(task) }] };
  const { result } = z.looseObject({ result: z.string().optional() }).parse(task);
  if (result === undefined) return null;
  return { contents: [{ uri, mimeType: 'text/markdown', text: result }] };
};

/** The versions that begin with `initialize`, newest first. */
const versions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;

export const isKnownVersion = (given: unknown): boolean =>
  versions.some((known) => known === given);

export const mcpErrors = {
  parse: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  resourceNotFound: -32002,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** An error answer of JSON-RPC. */
export class McpRequestError extends Error {
  override readonly name = 'McpError';
  readonly code: number;
  readonly data: object | undefined;

  constructor(code: number, message: string, data?: object) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** @throws McpError with the path of each problem */
const parseMcpParams = <Output>(schema: z.ZodType<Output>, params: unknown): Output => {
  const parsed = parseWithProblems(schema, params ?? {});
  if (parsed.ok) return parsed.value;
  const problems = parsed.problems.map(
    ({ path, problem }) => `${path.map(String).join('.') || 'params'} ${problem}`,
  );
  throw new McpRequestError(mcpErrors.invalidParams, `invalid params: ${problems.join('; ')}`);
};

const initializeSchema = z.looseObject({ protocolVersion: z.string() });
const callParamsSchema = z.looseObject({ name: z.string(), arguments: z.unknown().optional() });
const pageParamsSchema = z.looseObject({ cursor: z.string().optional() });
const resourceSchema = z.looseObject({ uri: z.string() });

export const instructions = `Hand work to coding agents: create_task, run with a role (${roles.join(', ')}), wait_for_task, then diff and merge. A task with awaiting has a question for your user; pass the answer on with answer.`;

export const serverCapabilities = { tools: {}, resources: {} };

export type McpIdentity = Pick<Identity, 'name' | 'version'>;

/** An unknown version gets our newest; the client decides whether it goes on. */
export const initializeAnswer = ({ name, version }: McpIdentity, params: unknown) => {
  const asked = parseMcpParams(initializeSchema, params).protocolVersion;
  return {
    protocolVersion: versions.find((known) => known === asked) ?? versions[0],
    capabilities: serverCapabilities,
    serverInfo: { name, title: 'Agent Task Server', version },
    instructions,
  };
};

type McpMethod = (backend: McpBackend, call: McpCall, params: unknown) => Promise<object>;

const mcpMethods: Readonly<Record<string, McpMethod>> = {
  'tools/list': async (backend) => listTools(backend.answerPolicy()),
  'tools/call': async (backend, call, params) => {
    const { name, arguments: given } = parseMcpParams(callParamsSchema, params);
    const result = await callTool(backend, call, name, given);
    if (result !== null) return result;
    throw new McpRequestError(
      mcpErrors.invalidParams,
      `unknown tool ${name.slice(0, 100)}; the tools are ${mcpToolNames(backend.answerPolicy()).join(', ')}`,
    );
  },
  'resources/list': async (backend, _, params) =>
    listResources(backend, parseMcpParams(pageParamsSchema, params).cursor),
  'resources/templates/list': async () => resourceTemplates,
  'resources/read': async (backend, _, params) => {
    const { uri } = parseMcpParams(resourceSchema, params);
    const found = await readResource(backend, uri);
    if (found !== null) return found;
    throw new McpRequestError(mcpErrors.resourceNotFound, 'there is no such resource', { uri });
  },
};

/** What clients may ask in every version of the protocol. */
export const serverMethods: ReadonlySet<string> = new Set(Object.keys(mcpMethods));

/** @throws McpError */
export const answerRequest = async (
  backend: McpBackend,
  call: McpCall,
  method: string,
  params: unknown,
): Promise<object> => {
  const run = Object.hasOwn(mcpMethods, method) ? mcpMethods[method] : undefined;
  if (run === undefined)
    throw new McpRequestError(mcpErrors.unknownMethod, `unknown method ${method.slice(0, 100)}`);
  try {
    return await run(backend, call, params);
  } catch (error) {
    if (error instanceof McpRequestError) throw error;
    const { code, message, facts } = withAdvice(backend.describeError(error));
    const number = code === 'task_not_found' ? mcpErrors.resourceNotFound : mcpErrors.internal;
    throw new McpRequestError(number, message, { ...facts, code });
  }
};
