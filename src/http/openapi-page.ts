import { commonRefusals, errorAnswer, jsonContent, openRefusals } from './openapi-answers.ts';

const stringSchema = { type: 'string' };
const answerSchemaOf = (description: string, ...keys: readonly string[]) => ({
  description,
  ...jsonContent({
    type: 'object',
    properties: Object.fromEntries(keys.map((key) => [key, stringSchema])),
  }),
});

/** The paths of the web page and its login. */
export const pagePaths = {
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
      summary: 'the project of this server, when it started, and when the session ends',
      responses: {
        200: answerSchemaOf('the session', 'project', 'version', 'started_at', 'expires_at'),
        ...commonRefusals,
      },
    },
    delete: {
      summary: 'ends the session',
      responses: { 204: { description: 'it has ended' }, ...commonRefusals },
    },
  },
};
