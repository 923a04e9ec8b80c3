import {
  commonRefusals,
  errorAnswer,
  jsonContent,
  openRefusals,
  rpcRefusals,
} from './openapi-answers.ts';

const roleParameter = { name: 'role', in: 'path', required: true, schema: { type: 'string' } };
const restParameter = { name: '*', in: 'path', required: true, schema: { type: 'string' } };
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
export const a2aPaths = {
  '/.well-known/agent-card.json': cardRoute('the agent card of A2A'),
  '/.well-known/agent.json': cardRoute('the agent card, for clients of A2A 0.3'),
  '/agents/{role}/.well-known/agent-card.json': cardRoute('the agent card of one role', ofRole),
  '/a2a': a2aRpcRoute('A2A 1.0 over JSON-RPC; all our methods too'),
  '/agents/{role}/a2a': a2aRpcRoute('A2A 1.0 over JSON-RPC, for one role', ofRole),
  '/a2a/rest/{*}': restRoute('A2A 1.0 over HTTP and JSON', [restParameter]),
  '/agents/{role}/a2a/rest/{*}': restRoute('A2A 1.0 over HTTP and JSON, for one role', [
    roleParameter,
    restParameter,
  ]),
};
