import { imageTypes } from '../actors/files/image.ts';
import {
  commonRefusals,
  errorAnswer,
  errorSchema,
  everyStreamRefusals,
  inspectRefusals,
  jsonContent,
  openRefusals,
  rpcRefusals,
  rpcRoute,
  rpcSchemas,
  taskStreamRefusals,
} from './openapi-rpc.ts';

const roleParameter = { name: 'role', in: 'path', required: true, schema: { type: 'string' } };
const restParameter = { name: 'path', in: 'path', required: true, schema: { type: 'string' } };
const ofRole = { parameters: [roleParameter] };
const noRole = { 404: errorAnswer('there is no such role') };
const anyBody = {
  requestBody: { required: true, ...jsonContent({ type: ['object', 'array'] }) },
};

const cardRoute = (summary: string, more: object = {}) => ({
  get: {
    summary,
    security: [],
    ...more,
    responses: {
      200: { description: summary, ...jsonContent({ type: 'object' }) },
      304: { description: 'the client has it already' },
      ...openRefusals,
      ...noRole,
    },
  },
});

const a2aRpcRoute = (summary: string, more: object = {}) => ({
  post: {
    summary,
    ...more,
    ...anyBody,
    responses: {
      200: {
        description: 'a JSON-RPC answer, or the events of a streaming method',
        content: { 'application/json': {}, 'text/event-stream': {} },
      },
      204: { description: 'the answer to a notification' },
      ...rpcRefusals,
      ...noRole,
    },
  },
});

const restAnswers = {
  200: {
    description: 'the result, or the events of a streaming method',
    content: { 'application/a2a+json': {}, 'text/event-stream': {} },
  },
  ...commonRefusals,
  404: { description: 'no such task or address, as A2A says it' },
};
const restRoute = (summary: string, parameters: readonly object[]) =>
  Object.fromEntries(
    ['get', 'post', 'delete'].map((verb) => [
      verb,
      { summary, parameters, ...(verb === 'post' ? anyBody : {}), responses: restAnswers },
    ]),
  );

/** A2A describes its own methods: https://a2a-protocol.org. */
const a2aPaths = {
  '/.well-known/agent-card.json': cardRoute('the agent card of A2A'),
  '/.well-known/agent.json': cardRoute('the agent card, for clients of A2A 0.3'),
  '/agents/{role}/.well-known/agent-card.json': cardRoute('the agent card of one role', ofRole),
  '/a2a': a2aRpcRoute('A2A 1.0 over JSON-RPC; all our methods too'),
  '/agents/{role}/a2a': a2aRpcRoute('A2A 1.0 over JSON-RPC, for one role', ofRole),
  '/a2a/rest/{path}': restRoute('A2A 1.0 over HTTP and JSON', [restParameter]),
  '/agents/{role}/a2a/rest/{path}': restRoute('A2A 1.0 over HTTP and JSON, for one role', [
    roleParameter,
    restParameter,
  ]),
};

const stringSchema = { type: 'string' };
const answerSchemaOf = (description: string, ...keys: readonly string[]) => ({
  description,
  ...jsonContent({
    type: 'object',
    properties: Object.fromEntries(keys.map((key) => [key, stringSchema])),
  }),
});

/** The paths of the web page and its login. */
const pagePaths = {
  '/': {
    get: {
      summary: 'the web page',
      security: [],
      responses: {
        200: { description: 'HTML', content: { 'text/html': {} } },
        404: errorAnswer('the page is not built'),
        ...openRefusals,
      },
    },
  },
  '/assets/{name}': {
    get: {
      summary: 'a file of the web page',
      security: [],
      parameters: [{ name: 'name', in: 'path', required: true, schema: stringSchema }],
      responses: {
        200: { description: 'a script, a style or a picture' },
        404: errorAnswer('no such file'),
        ...openRefusals,
      },
    },
  },
  '/page/codes': {
    post: {
      summary: 'makes a login code of the web page; needs the token of the server',
      responses: {
        200: answerSchemaOf('a code that works once and for 60 seconds', 'code', 'expires_at'),
        ...commonRefusals,
      },
    },
  },
  '/page/session': {
    post: {
      summary: 'exchanges a code for the token of a session, which ends after 12 hours',
      security: [],
      requestBody: {
        required: true,
        ...jsonContent({ type: 'object', required: ['code'], properties: { code: stringSchema } }),
      },
      responses: {
        200: answerSchemaOf('the token of the session', 'token', 'expires_at'),
        ...commonRefusals,
        400: errorAnswer('no code was given'),
        401: errorAnswer('the code was used, is too old, or is not known'),
        413: errorAnswer('the body holds more than 1 KiB'),
        415: errorAnswer('the body is not application/json'),
      },
    },
    get: {
      summary: 'who asks, the project of this server, when it started, and when the session ends',
      responses: {
        200: answerSchemaOf(
          'the session; repository: where pull requests go to, if anywhere',
          ...['name', 'rights', 'project', 'version', 'started_at', 'expires_at', 'repository'],
        ),
        ...commonRefusals,
      },
    },
    delete: {
      summary: 'ends the session',
      responses: { 204: { description: 'it has ended' }, ...commonRefusals },
    },
  },
};

const forgePaths = {
  '/forge/webhook': {
    post: {
      summary: 'a delivery of the forge, signed with the secret of forge.webhook_secret_env',
      security: [],
      parameters: [
        {
          name: 'X-Hub-Signature-256',
          in: 'header',
          required: true,
          schema: stringSchema,
          description: 'sha256= and the HMAC-SHA256 of the body in hex',
        },
      ],
      requestBody: { required: true, ...jsonContent({ type: 'object' }) },
      responses: {
        202: { description: 'the forge is asked soon, if the delivery is of our repository' },
        ...openRefusals,
        400: errorAnswer('the delivery names no repository, or is no JSON'),
        401: errorAnswer('the signature is wrong'),
        404: errorAnswer('the route is off'),
        408: errorAnswer('the body took more than 10 s'),
        413: errorAnswer('the body holds more than 25 MiB'),
        429: errorAnswer('too many deliveries at once, or with a wrong signature'),
      },
    },
  },
};

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

const imageContent = Object.fromEntries(imageTypes.map((type) => [type, {}]));

/** `post /agents/{role}/a2a` is `postAgentsRoleA2a`. */
const operationId = (verb: string, path: string): string =>
  [verb, ...path.split(/[^A-Za-z0-9]+/)]
    .filter((word) => word !== '')
    .map((word, at) => (at === 0 ? word : `${word[0]?.toUpperCase()}${word.slice(1)}`))
    .join('');

type Operations = Readonly<Record<string, object>>;

/** Generators name the function of an operation by its id. */
const withIds = (paths: Readonly<Record<string, Operations>>) =>
  Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(
        Object.entries(operations).map(([verb, operation]) => [
          verb,
          { operationId: operationId(verb, path), ...operation },
        ]),
      ),
    ]),
  );

/** Generated from the schemas that parse the requests. */
export const openApiDocument = (name: string, version: string) => ({
  openapi: '3.1.0',
  info: {
    title: name,
    version,
    description: 'Runs coding agents on tracked tasks. One server serves one project.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/', description: 'the server that answers this description' }],
  security: [{ token: [] }],
  paths: withIds({
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
    '/images': {
      post: {
        summary: 'keeps an image for an hour; create takes its digest in attachments',
        requestBody: { required: true, content: imageContent },
        responses: {
          200: { description: 'the image', ...jsonContent({ type: 'object' }) },
          ...commonRefusals,
          413: errorAnswer('more than 5 MiB'),
          415: errorAnswer('no PNG, JPEG or WebP image, or another one than the header says'),
          429: rpcRefusals[429],
        },
      },
    },
    '/images/{task_id}/{digest}': {
      get: {
        summary: 'an image of a task',
        parameters: ['task_id', 'digest'].map((name) => ({
          name,
          in: 'path',
          required: true,
          schema: { type: 'string' },
        })),
        responses: {
          200: { description: 'the image', content: imageContent },
          ...commonRefusals,
          404: errorAnswer('no such image'),
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
    ...forgePaths,
    '/openapi.json': readRoute('this description'),
  }),
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas: { ...rpcSchemas(), Error: errorSchema },
  },
});
