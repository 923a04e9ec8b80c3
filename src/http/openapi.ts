import { a2aPaths } from './openapi-a2a.ts';
import {
  commonRefusals,
  errorAnswer,
  errorSchema,
  everyStreamRefusals,
  inspectRefusals,
  jsonContent,
  openRefusals,
  rpcRefusals,
  taskStreamRefusals,
} from './openapi-answers.ts';
import { pagePaths } from './openapi-page.ts';
import { rpcRoute, rpcSchemas } from './openapi-rpc.ts';

const frameAnswer = {
  200: { description: 'server-sent events', content: { 'text/event-stream': {} } },
};

const counterContent = { 'text/plain': {}, 'application/json': { schema: { type: 'object' } } };

const streamRoute = (summary: string, refused: object, parameters: readonly object[] = []) => ({
  get: {
    summary,
    parameters: [
      ...parameters,
      { name: 'Last-Event-ID', in: 'header', schema: { type: 'integer' } },
      { name: 'after', in: 'query', schema: { type: 'integer' } },
    ],
    responses: { ...frameAnswer, ...refused },
  },
});

const readRoute = (summary: string) => ({
  get: {
    summary,
    responses: {
      200: { description: summary, ...jsonContent({ type: 'object' }) },
      ...commonRefusals,
    },
  },
});

const openReadRoute = (summary: string) => ({
  get: {
    summary,
    security: [],
    responses: {
      200: { description: summary, ...jsonContent({ type: 'object' }) },
      ...openRefusals,
      503: {
        description: 'the same document, while the server drains',
        ...jsonContent({ type: 'object' }),
      },
    },
  },
});

/** Generated from the schemas that parse the requests. */
export const openApiDocument = (name: string, version: string) => ({
  openapi: '3.1.0',
  info: {
    title: name,
    version,
    description: 'Runs coding agents on tracked tasks. One server serves one project.',
  },
  security: [{ token: [] }],
  paths: {
    '/a2a/execute': rpcRoute('JSON-RPC 2.0, all methods; meant for execute'),
    '/a2a/status': rpcRoute('JSON-RPC 2.0, all methods; meant for status'),
    '/a2a/discovery': {
      ...rpcRoute('JSON-RPC 2.0, all methods; meant for discovery'),
      ...readRoute('agent capabilities'),
    },
    ...a2aPaths,
    '/mcp': {
      post: {
        summary: 'Model Context Protocol, one message for each request (Streamable HTTP)',
        requestBody: { required: true, ...jsonContent({ type: ['object', 'array'] }) },
        responses: {
          200: { description: 'the answer', ...jsonContent({ type: ['object', 'array'] }) },
          202: { description: 'the message wants no answer' },
          ...commonRefusals,
        },
      },
    },
    '/stream': streamRoute('progress of every task', everyStreamRefusals),
    '/stream/{task_id}': streamRoute('progress of one task', taskStreamRefusals, [
      { name: 'task_id', in: 'path', required: true, schema: { type: 'string' } },
    ]),
    '/export/{task_id}': {
      get: {
        summary: 'a task as one file, as agent export writes it',
        parameters: [{ name: 'task_id', in: 'path', required: true, schema: { type: 'string' } }],
        responses: {
          200: { description: 'HTML to keep', content: { 'text/html': {} } },
          ...commonRefusals,
          404: errorAnswer('no such task'),
          429: rpcRefusals[429],
        },
      },
    },
    '/inspect': {
      get: {
        summary: "XState's inspection events of the running machines; needs --inspect",
        responses: { ...frameAnswer, ...inspectRefusals },
      },
    },
    '/health': openReadRoute('liveness, features and checks'),
    '/health/ready': openReadRoute('whether the server accepts work'),
    '/metrics': {
      get: {
        summary: 'counters: Prometheus text, or JSON with Accept: application/json',
        responses: { 200: { description: 'counters', content: counterContent }, ...commonRefusals },
      },
    },
    '/surroundings': readRoute(
      'node, PATH, names of the keys and configuration that the server works with; what commands had made when an earlier process died',
    ),
    ...pagePaths,
    '/openapi.json': readRoute('this description'),
  },
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas: { ...rpcSchemas(), Error: errorSchema },
  },
});
