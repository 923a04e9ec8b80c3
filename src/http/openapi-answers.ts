import { refusedRequests, wire } from './error-table.ts';

export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
export const json = (schema: object) => ({ content: { 'application/json': { schema } } });

/** The body of every error that is not a JSON-RPC answer; further keys are the facts of its code. */
export const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { enum: [...Object.keys(wire), ...Object.keys(refusedRequests), 'too_many_streams'] },
        message: { type: 'string' },
      },
    },
  },
};

const refused = (description: string) => ({ description, ...json(ref('Error')) });
const refusedForNow = (description: string) => ({
  ...refused(description),
  headers: { 'Retry-After': { description: 'seconds', schema: { type: 'integer' } } },
});

const tooManyFailures = 'too many requests with a wrong token';

/** What every route may answer beside what it is there for. */
export const openRefusals = {
  400: refused('no HTTP, or a path that cannot be decoded'),
  403: refused('refused by the check of Host, Origin, Sec-Fetch-Site, target or method; the error says which'),
  408: refused('the request did not arrive in time'),
  414: refused('path and query hold more than 2 KiB'),
  431: refused('the headers hold more than 16 KiB'),
  500: refused('an error inside; the server log has the details'),
};

/** What every route that asks for the token may answer. */
export const refusals = {
  ...openRefusals,
  401: refused('no token, or a wrong one; the error says where the token is'),
  429: refusedForNow(tooManyFailures),
};

export const rpcRefusals = {
  ...refusals,
  400: { description: 'no JSON, or no JSON-RPC request', ...json({ anyOf: [ref('RpcAnswer'), ref('Error')] }) },
  413: refused('the body holds more than 1 MiB'),
  415: refused('the body is not application/json'),
  429: refusedForNow(`${tooManyFailures}, or too many requests at once`),
};

export const everyStreamRefusals = {
  ...refusals,
  400: refused('Last-Event-ID or after is not the id of a frame of this server'),
  503: refusedForNow('as many streams are open as this server allows'),
};

export const taskStreamRefusals = {
  ...everyStreamRefusals,
  404: refused('the task does not exist'),
  429: refusedForNow(`${tooManyFailures}, or as many streams of this task are open as the server allows`),
  503: refusedForNow('as many streams are open as this server allows, or the tracker cannot be used'),
};

export const inspectRefusals = {
  ...refusals,
  404: refused('this server was not started with --inspect'),
  503: refusedForNow('as many streams are open as this server allows'),
};
