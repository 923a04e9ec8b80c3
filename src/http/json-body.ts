import type { FastifyRequest } from 'fastify';

/** Fastify's code, also for a body in another charset than UTF-8. */
export const wrongMediaType = 'FST_ERR_CTP_INVALID_MEDIA_TYPE';

export const bodyTooLarge = 'FST_ERR_CTP_BODY_TOO_LARGE';

const charsetIn = /;\s*charset\s*=\s*"?([^";\s]*)/gi;
const isUtf8 = /^(?:utf-?8|us-ascii)$/i;

/** Takes a body as text. Another charset than UTF-8 would be read wrongly, so it is refused. */
export const parseText = (
  { headers }: FastifyRequest,
  body: string | Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void => {
  const charsets = [...(headers['content-type'] ?? '').matchAll(charsetIn)];
  if (charsets.every(([, charset = '']) => isUtf8.test(charset))) done(null, body);
  else done(Object.assign(new Error('not in UTF-8'), { code: wrongMediaType, statusCode: 415 }));
};
