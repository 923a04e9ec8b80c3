import type { FastifyError, FastifyReply } from 'fastify';
import { isServiceError, type ServiceError } from '../machines/errors.ts';
import { errorBody, errorStatuses, requestErrors } from './error-table.ts';
import { wrongMediaType } from './json-body.ts';

/** In bytes. */
export const bodyLimit = 1024 * 1024;

const fastifyErrors: Readonly<Record<string, readonly [keyof typeof requestErrors, string]>> = {
  [wrongMediaType]: ['unsupported_media_type', 'send Content-Type: application/json, in UTF-8'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['payload_too_large', `a request holds at most ${bodyLimit} bytes`],
};

/** Only the log gets the details of an internal error. */
export const answerError = (
  error: FastifyError | ServiceError,
  reply: FastifyReply,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): FastifyReply => {
  if (isServiceError(error) && error.code !== 'internal')
    return reply
      .code(errorStatuses[error.code].http)
      .send(errorBody(error.code, error.message, error.facts));
  const known = fastifyErrors[error.code];
  if (known !== undefined) return reply.code(requestErrors[known[0]]).send(errorBody(...known));
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500)
    return reply.code(status).send(errorBody('invalid_request', 'the request cannot be read'));
  log('request failed', { error });
  return reply
    .code(500)
    .send(errorBody('internal', 'internal error; the server log has the details'));
};
