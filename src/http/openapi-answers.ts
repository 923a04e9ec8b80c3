import { errorStatuses, requestErrors } from './error-table.ts';

export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
export const jsonContent = (schema: object) => ({ content: { 'application/json': { schema } } });

/** The body of an error outside JSON-RPC; further keys are the facts of its code. */
export const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: {
          enum: [...Object.keys(errorStatuses), ...Object.keys(requestErrors), 'too_many_streams'],
        },
        message: { type: 'string' },
      },
    },
  },
};

export const errorAnswer = (description: string) => ({ description, ...jsonContent(ref('Error')) });
const retryLaterAnswer = (description: string) => ({
  ...errorAnswer(description),
  headers: { 'Retry-After': { description: 'seconds', schema: { type: 'integer' } } },
});

const tooManyFailures = 'too many requests with a wrong token';

export const openRefusals = {
  400: errorAnswer('not an HTTP request, or a path that cannot be decoded'),
  403: errorAnswer(
    'refused by the check of Host, Origin, Sec-Fetch-Site, target or method; the error says which',
  ),
  408: errorAnswer('the request did not arrive in time'),
  414: errorAnswer('path and query hold more than 2 KiB'),
  431: errorAnswer('the headers hold more than 16 KiB'),
  500: errorAnswer('an internal error; the server log has the details'),
};

export const commonRefusals = {
  ...openRefusals,
  401: errorAnswer('no token, or a wrong one; the error says where the token is'),
  429: retryLaterAnswer(tooManyFailures),
};

export const rpcRefusals = {
  ...commonRefusals,
  400: {
    description: 'not JSON, or not a JSON-RPC request',
    ...jsonContent({ anyOf: [ref('RpcAnswer'), ref('Error')] }),
  },
  413: errorAnswer('the body holds more than 1 MiB'),
  415: errorAnswer('the body is not application/json'),
  429: retryLaterAnswer(`${tooManyFailures}, or too many requests at once`),
};

export const everyStreamRefusals = {
  ...commonRefusals,
  400: errorAnswer('Last-Event-ID or after is not the id of a frame of this server'),
  503: retryLaterAnswer('as many streams are open as this server allows'),
};

export const taskStreamRefusals = {
  ...everyStreamRefusals,
  404: errorAnswer('the task does not exist'),
  429: retryLaterAnswer(
    `${tooManyFailures}, or as many streams of this task are open as the server allows`,
  ),
  503: retryLaterAnswer(
    'as many streams are open as this server allows, or the tracker cannot be used',
  ),
};

export const inspectRefusals = {
  ...commonRefusals,
  404: errorAnswer('this server was not started with --inspect'),
  503: retryLaterAnswer('as many streams are open as this server allows'),
};
