import { createHmac, type Hmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorBody, requestErrors } from './error-table.ts';
import { addressOf, createThrottle, safeEqual, windowMs } from './people/callers.ts';
import type { OnRequest } from './rpc-routes.ts';

export interface ForgeWebhookOptions {
  /** Null: the route is off. */
  readonly forgeSecret: string | null;
}

interface ForgeWebhookParts {
  readonly secret: string | null;
  /** Something moved in a repository. */
  readonly wake: (repository: string) => Promise<void>;
  readonly onRequest: OnRequest;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** GitHub sends no larger ones. */
const bytesAtMost = 25 * 1024 * 1024;
/** GitHub waits no longer for the answer. */
const bodyMs = 10_000;
/** Bodies in memory. */
const bodiesAtOnce = 2;

const deliverySchema = z.object({ repository: z.object({ full_name: z.string().max(300) }) });

type Refusal = 'late' | 'large' | 'cut';

const readBody = async (
  body: AsyncIterable<Buffer>,
  hmac: Hmac,
): Promise<Buffer | Exclude<Refusal, 'late'>> => {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.length;
      if (size > bytesAtMost) return 'large';
      hmac.update(chunk);
      chunks.push(chunk);
    }
  } catch {
    return 'cut';
  }
  return Buffer.concat(chunks);
};

const refusals: Readonly<Record<Refusal, readonly [keyof typeof requestErrors, string]>> = {
  large: ['payload_too_large', `a delivery holds at most ${bytesAtMost} bytes`],
  late: ['request_timeout', 'the delivery did not arrive in time'],
  cut: ['invalid_request', 'the delivery ended early'],
};

const refuse = (reply: FastifyReply, name: keyof typeof requestErrors, message: string) =>
  reply.code(requestErrors[name]).send(errorBody(name, message));

/** The rest of a body that is not read stays in the connection. */
const refuseRest = (reply: FastifyReply, name: keyof typeof requestErrors, message: string) =>
  refuse(reply.header('connection', 'close'), name, message);

const repositoryIn = (body: Buffer): string | null => {
  try {
    return deliverySchema.parse(JSON.parse(body.toString())).repository.full_name;
  } catch {
    return null;
  }
};

/**
 * Deliveries of a forge, each signed with our secret. One says that something moved in a repository; the
 * forge itself is asked what. A repeated delivery makes it ask once more, at most once a second.
 */
export const addForgeWebhook = (
  app: FastifyInstance,
  { secret, wake, onRequest, log }: ForgeWebhookParts,
): void => {
  const throttle = createThrottle(() => performance.now());
  let bodies = 0;

  const refuseSignature = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { over, first } = throttle.failed(addressOf(request));
    if (first) log('too many deliveries with a wrong signature; they are throttled', {});
    return over
      ? refuseRest(
          reply.header('retry-after', windowMs / 1_000),
          'too_many_failures',
          'too many deliveries with a wrong signature; wait a minute',
        )
      : refuseRest(
          reply,
          'unauthorized',
          'the signature in X-Hub-Signature-256 is not of this body and forge.webhook_secret_env',
        );
  };

  const receive = async (
    key: string,
    given: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const hmac = createHmac('sha256', key);
    const over = new AbortController();
    const late = delay(bodyMs, 'late' as const, { signal: over.signal, ref: false });
    const read = await Promise.race([
      readBody(request.raw, hmac),
      late.catch(() => 'late' as const),
    ]);
    over.abort();
    if (typeof read === 'string') return refuseRest(reply, ...refusals[read]);
    if (!safeEqual(given, `sha256=${hmac.digest('hex')}`)) return refuseSignature(request, reply);
    const repository = repositoryIn(read);
    if (repository === null)
      return refuse(reply, 'invalid_request', 'the delivery names no repository, or is no JSON');
    await wake(repository);
    return reply.code(202).send();
  };

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _body, done) => done(null));
    scope.post('/forge/webhook', { onRequest, bodyLimit: bytesAtMost }, async (request, reply) => {
      if (secret === null)
        return refuseRest(reply, 'not_found', 'set forge.webhook_secret_env to take deliveries');
      const given = request.headers['x-hub-signature-256'];
      if (typeof given !== 'string' || !/^sha256=[0-9a-f]{64}$/.test(given))
        return refuseSignature(request, reply);
      if (Number(request.headers['content-length'] ?? 0) > bytesAtMost)
        return refuseRest(reply, ...refusals.large);
      if (bodies === bodiesAtOnce)
        return refuseRest(
          reply.header('retry-after', bodyMs / 1_000),
          'too_many_requests',
          'other deliveries are being read',
        );
      bodies += 1;
      try {
        return await receive(secret, given, request, reply);
      } finally {
        bodies -= 1;
      }
    });
  });
};
