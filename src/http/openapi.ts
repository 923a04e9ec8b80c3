import {
  errorSchema,
  everyStreamRefusals,
  inspectRefusals,
  json,
  openRefusals,
  refusals,
  taskStreamRefusals,
} from './openapi-answers.ts';
import { rpcRoute, rpcSchemas } from './openapi-rpc.ts';

const frames = { 200: { description: 'server-sent events', content: { 'text/event-stream': {} } } };

const counters = { 'text/plain': {}, 'application/json': { schema: { type: 'object' } } };

const stream = (summary: string, refused: object, parameters: readonly object[] = []) => ({
  get: {
    summary,
    parameters: [
      ...parameters,
      { name: 'Last-Event-ID', in: 'header', schema: { type: 'integer' } },
      { name: 'after', in: 'query', schema: { type: 'integer' } },
    ],
    responses: { ...frames, ...refused },
  },
});

const read = (summary: string) => ({
  get: { summary, responses: { 200: { description: summary, ...json({ type: 'object' }) }, ...refusals } },
});

const openRead = (summary: string) => ({
  get: {
    summary,
    security: [],
    responses: {
      200: { description: summary, ...json({ type: 'object' }) },
      ...openRefusals,
      503: { description: 'the same while the server drains', ...json({ type: 'object' }) },
    },
  },
});

/** The description of the HTTP face, generated from the schemas that parse its requests. */
export const openApiDocument = (name: string, version: string) => ({
  openapi: '3.1.0',
  info: { title: name, version, description: 'Runs coding agents on tracked tasks. One server serves one project.' },
  security: [{ token: [] }],
  paths: {
    '/a2a/execute': rpcRoute('JSON-RPC 2.0, all methods; meant for execute'),
    '/a2a/status': rpcRoute('JSON-RPC 2.0, all methods; meant for status'),
    '/a2a/discovery': { ...rpcRoute('JSON-RPC 2.0, all methods; meant for discovery'), ...read('agent capabilities') },
    '/stream': stream('progress of every task', everyStreamRefusals),
    '/stream/{task_id}': stream('progress of one task', taskStreamRefusals, [
      { name: 'task_id', in: 'path', required: true, schema: { type: 'string' } },
    ]),
    '/inspect': {
      get: {
        summary: "XState's inspection events of the live machines, with --inspect only",
        responses: { ...frames, ...inspectRefusals },
      },
    },
    '/health': openRead('liveness, features and checks'),
    '/health/ready': openRead('whether it takes work'),
    '/metrics': {
      get: {
        summary: 'counters: Prometheus text, or JSON with Accept: application/json',
        responses: { 200: { description: 'counters', content: counters }, ...refusals },
      },
    },
    '/openapi.json': read('this description'),
  },
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas: { ...rpcSchemas(), Error: errorSchema },
  },
});
