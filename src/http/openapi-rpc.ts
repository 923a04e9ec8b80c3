import { z } from 'zod';
import { taskViewSchema } from '../machines/task-view.ts';
import { envelope, wire } from './error-table.ts';
import { json, ref, rpcRefusals } from './openapi-answers.ts';
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

/** The names of the methods that the description knows. */
export const describedMethods: readonly string[] = Object.keys(methods);

const schemaOf = (schema: z.ZodType, io: 'input' | 'output') => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
};

const pascal = (name: string): string => name.replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
const refs = (suffix: 'Request' | 'Result') => describedMethods.map((name) => ref(`${pascal(name)}${suffix}`));

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

/** The requests and the answers; several methods answer alike, so a result may fit more than one of its schemas. */
export const rpcSchemas = () => ({
  ...Object.fromEntries(
    Object.entries(methods).flatMap(([name, [params, result]]) => [
      [`${pascal(name)}Params`, schemaOf(params, 'input')],
      [`${pascal(name)}Result`, schemaOf(result, 'output')],
      [`${pascal(name)}Request`, requestOf(name)],
    ]),
  ),
  RpcRequest: { anyOf: refs('Request') },
  RpcAnswer: {
    type: 'object',
    required: ['jsonrpc', 'id'],
    properties: {
      jsonrpc: { const: '2.0' },
      id: { type: ['string', 'number', 'null'] },
      result: { anyOf: refs('Result') },
      error: ref('RpcError'),
    },
    oneOf: [{ required: ['result'] }, { required: ['error'] }],
  },
  RpcError: {
    type: 'object',
    required: ['code', 'message'],
    properties: {
      code: { enum: [...Object.values(envelope), ...Object.values(wire)].map(({ rpc }) => rpc) },
      message: { type: 'string' },
      data: { type: 'object', properties: { code: { type: 'string' } } },
    },
  },
});

const oneOrBatch = (name: string) => ({
  anyOf: [ref(name), { type: 'array', items: ref(name), minItems: 1, maxItems: 20 }],
});

/** A route that answers every method. */
export const rpcRoute = (summary: string) => ({
  post: {
    summary,
    requestBody: { required: true, ...json(oneOrBatch('RpcRequest')) },
    responses: {
      200: { description: 'a JSON-RPC answer, also for an error of the method', ...json(oneOrBatch('RpcAnswer')) },
      204: { description: 'the answer to a notification' },
      ...rpcRefusals,
    },
  },
});
