import { z } from 'zod';
import { taskViewSchema } from '../machines/task-view.ts';
import { wire } from './error-table.ts';
import {
  changeSchema,
  createSchema,
  dependencySchema,
  executeSchema,
  executionSchema,
  historySchema,
  listSchema,
  replaySchema,
  respondSchema,
  retrySchema,
  taskSchema,
} from './wire.ts';

const none = z.strictObject({});
const page = z.strictObject({
  tasks: z.array(taskViewSchema),
  next_cursor: z.string().optional(),
  note: z.string().optional(),
});
const frames = z.strictObject({ entries: z.array(z.looseObject({})), next_after: z.int().optional() });
const anything = z.looseObject({});

/** Params and result of every JSON-RPC method (CONTRACT 3). */
const methods: Readonly<Record<string, readonly [params: z.ZodType, result: z.ZodType]>> = {
  execute: [executeSchema, executionSchema],
  status: [taskSchema, taskViewSchema],
  discovery: [none, anything],
  create: [createSchema, taskViewSchema],
  list: [listSchema, page],
  history: [historySchema, frames],
  explain: [taskSchema, anything],
  replay: [replaySchema, anything],
  add_dependency: [dependencySchema, taskViewSchema],
  remove_dependency: [dependencySchema, taskViewSchema],
  close: [changeSchema, taskViewSchema],
  reopen: [changeSchema, taskViewSchema],
  cancel: [changeSchema, taskViewSchema],
  retry: [retrySchema, taskViewSchema],
  respond: [respondSchema, taskViewSchema],
};

const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
};

const pascal = (name: string): string => name.replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: object) => ({ content: { 'application/json': { schema } } });
const ok = (description: string, schema: object) => ({ 200: { description, ...json(schema) } });

const requestOf = (method: string) => ({
  type: 'object',
  required: ['jsonrpc', 'method'],
  properties: {
    jsonrpc: { const: '2.0' },
    id: { type: ['string', 'number', 'null'] },
    method: { enum: [method, `a2a.${method}`] },
    params: ref(`${pascal(method)}Params`),
  },
});

const components = () => ({
  securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
  schemas: {
    ...Object.fromEntries(
      Object.entries(methods).flatMap(([name, [params, result]]) => [
        [`${pascal(name)}Params`, schemaOf(params, 'input')],
        [`${pascal(name)}Result`, schemaOf(result, 'output')],
        [`${pascal(name)}Request`, requestOf(name)],
      ]),
    ),
    RpcAnswer: {
      type: 'object',
      required: ['jsonrpc', 'id'],
      properties: {
        jsonrpc: { const: '2.0' },
        id: { type: ['string', 'number', 'null'] },
        result: { oneOf: Object.keys(methods).map((name) => ref(`${pascal(name)}Result`)) },
        error: ref('RpcError'),
      },
    },
    RpcError: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { enum: [-32_700, -32_600, -32_601, ...Object.values(wire).map(({ rpc }) => rpc)] },
        message: { type: 'string' },
        data: { type: 'object', properties: { code: { type: 'string' } } },
      },
    },
  },
});

const rpc = (summary: string) => ({
  post: {
    summary,
    requestBody: {
      required: true,
      ...json({ anyOf: Object.keys(methods).map((name) => ref(`${pascal(name)}Request`)) }),
    },
    responses: {
      ...ok('a JSON-RPC answer, also for an error of the method', ref('RpcAnswer')),
      204: { description: 'the answer to a notification' },
      400: { description: 'no JSON, or no JSON-RPC request', ...json(ref('RpcAnswer')) },
    },
  },
});

const sse = (summary: string, parameters: readonly object[] = []) => ({
  get: {
    summary,
    parameters: [
      ...parameters,
      { name: 'Last-Event-ID', in: 'header', schema: { type: 'integer' } },
      { name: 'after', in: 'query', schema: { type: 'integer' } },
    ],
    responses: { 200: { description: 'server-sent events', content: { 'text/event-stream': {} } } },
  },
});

const read = (summary: string, open = false) => ({
  get: { summary, ...(open ? { security: [] } : {}), responses: ok(summary, { type: 'object' }) },
});

/** The description of the HTTP face, generated from the schemas that parse its requests. */
export const openApiDocument = (name: string, version: string) => ({
  openapi: '3.1.0',
  info: { title: name, version, description: 'Runs coding agents on tracked tasks. One server serves one project.' },
  security: [{ token: [] }],
  paths: {
    '/a2a/execute': rpc('every JSON-RPC method; execute by name'),
    '/a2a/status': rpc('every JSON-RPC method; status by name'),
    '/a2a/discovery': { ...rpc('every JSON-RPC method; discovery by name'), ...read('agent capabilities') },
    '/stream': sse('progress of every task'),
    '/stream/{task_id}': sse('progress of one task', [
      { name: 'task_id', in: 'path', required: true, schema: { type: 'string' } },
    ]),
    '/inspect': {
      get: {
        summary: "XState's inspection events of the live machines, with --inspect only",
        responses: { 200: { description: 'server-sent events', content: { 'text/event-stream': {} } } },
      },
    },
    '/health': read('liveness, features and checks', true),
    '/health/ready': read('whether it takes work', true),
    '/metrics': read('counters: Prometheus text, or JSON with Accept: application/json'),
    '/openapi.json': read('this description'),
  },
  components: components(),
});

/** The names of the methods that the description knows. */
export const describedMethods: readonly string[] = Object.keys(methods);
