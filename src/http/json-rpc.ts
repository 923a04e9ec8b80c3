import type { FastifyRequest } from 'fastify';
import { createJSONRPCErrorResponse, JSONRPCServer } from 'json-rpc-2.0';
import { z } from 'zod';
import { StoreError } from '../actors/store/port.ts';
import { isServiceError, ServiceError } from '../machines/errors.ts';
import { envelopeErrors, errorStatuses } from './error-table.ts';
import type { Method, MethodCall } from './methods.ts';
import { parseWithProblems, type SchemaProblem } from './schema-problems.ts';

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

const depthAtMost = 64;

/** Finds deep nesting before `JSON.parse` builds it. */
const isTooDeep = (text: string): boolean => {
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (quoted) {
      if (code === 92) index += 1;
      else if (code === 34) quoted = false;
    } else if (code === 34) quoted = true;
    else if (code === 91 || code === 123) depth += 1;
    else if (code === 93 || code === 125) depth -= 1;
    if (depth > depthAtMost) return true;
  }
  return false;
};

type ReadJson =
  | { readonly value: unknown }
  | { readonly code: 'parse_error' | 'invalid_request'; readonly problem: string };

export const readJson = (text: string): ReadJson => {
  if (isTooDeep(text))
    return { code: 'invalid_request', problem: `nested deeper than ${depthAtMost} levels` };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { code: 'parse_error', problem: 'the body is not JSON' };
  }
};

export const rpcRequestSchema = z.strictObject({
  jsonrpc: z.literal('2.0'),
  method: z.string().min(1),
  params: z
    .custom<object>(
      (given) => typeof given === 'object' && given !== null,
      'expected an object or an array',
    )
    .optional(),
  id: z
    .union([z.string(), z.number(), z.null()], { error: 'expected text, a number or null' })
    .optional(),
});

type RpcRequest = z.infer<typeof rpcRequestSchema>;

/** Methods that answer in their own way, also with errors. */
export interface MoreMethods {
  has(method: string): boolean;
  /** The whole answer of JSON-RPC. Never rejects. */
  answer(request: RpcRequest): Promise<object>;
  /** The answer to a method that is unknown here; null: ours, which names our methods. */
  refuseUnknown(request: RpcRequest): object | null;
  /** What the methods of ours are called with. */
  readonly call?: MethodCall;
}

const noMore: MoreMethods = {
  has: () => false,
  answer: async () => ({}),
  refuseUnknown: () => null,
};

/** No body (204), or a body with its HTTP status. */
type RpcAnswer = { readonly status: 204 } | { readonly status: 200 | 400; readonly body: unknown };

const withRetry = z.object({
  error: z.object({ data: z.object({ retry_after_seconds: z.number() }) }),
});

export const retryAfterOf = (body: unknown): number | null => {
  const waits = (Array.isArray(body) ? body : [body]).flatMap((answer) => {
    const parsed = withRetry.safeParse(answer);
    return parsed.success ? [parsed.data.error.data.retry_after_seconds] : [];
  });
  return waits.length === 0 ? null : Math.max(...waits);
};

const batchAtMost = 20;

const envelopeFailure = (
  code: keyof typeof envelopeErrors,
  message: string,
  id: string | number | null = null,
) => createJSONRPCErrorResponse(id, envelopeErrors[code].rpc, message, { code });

const malformed = (request: unknown, problems: readonly SchemaProblem[]) => {
  const id = z.object({ id: z.union([z.string(), z.number()]) }).safeParse(request);
  const where = problems
    .map(({ path, problem }) => `${path.join('.').slice(0, 100) || 'request'}: ${problem}`)
    .join('; ');
  return envelopeFailure(
    'invalid_request',
    `not a JSON-RPC 2.0 request: ${where}`,
    id.success ? id.data.id : null,
  );
};

/**
 * JSON-RPC 2.0 over json-rpc-2.0. The envelope is checked first and batches are split here: the
 * package throws on `null` and answers a batch of one with an object. The message of an unknown
 * error never reaches the caller; the package would send it.
 */
export const createRpcServer = (
  methods: Readonly<Record<string, Method>>,
  onInternal: (error: unknown) => void,
): ((text: string, more?: MoreMethods) => Promise<RpcAnswer>) => {
  const server = new JSONRPCServer<MoreMethods['call']>({ errorListener: () => {} });
  for (const [name, method] of Object.entries(methods)) {
    server.addMethod(name, method);
    server.addMethod(`a2a.${name}`, method);
  }
  server.mapErrorToJSONRPCErrorResponse = (id, error: unknown) => {
    const known: ServiceError = isServiceError(error)
      ? error
      : new ServiceError('internal', {
          detail: error instanceof StoreError ? error.message : null,
        });
    if (known.code === 'internal') onInternal(error);
    const facts = known.code === 'internal' ? {} : known.facts;
    return createJSONRPCErrorResponse(id, errorStatuses[known.code].rpc, known.message, {
      ...facts,
      code: known.code,
    });
  };

  const answerOne = async (
    request: unknown,
    more: MoreMethods,
  ): Promise<{ readonly answer: unknown; readonly malformed: boolean }> => {
    const parsed = parseWithProblems(rpcRequestSchema, request);
    return parsed.ok
      ? { answer: await answerCall(parsed.value, more), malformed: false }
      : { answer: malformed(request, parsed.problems), malformed: true };
  };

  const answerCall = async (request: RpcRequest, more: MoreMethods): Promise<unknown> => {
    const { jsonrpc, method, params, id } = request;
    if (more.has(method)) {
      const answer = await more.answer(request);
      return id === undefined ? null : answer;
    }
    if (!server.hasMethod(method) && id !== undefined)
      return (
        more.refuseUnknown(request) ??
        envelopeFailure(
          'method_not_found',
          `unknown method ${method.slice(0, 100)}; the methods are ${Object.keys(methods).join(', ')}`,
          id,
        )
      );
    const given = params === undefined ? {} : { params };
    return server.receive(
      { jsonrpc, method, ...given, ...(id === undefined ? {} : { id }) },
      more.call,
    );
  };

  const answerBatch = async (batch: readonly unknown[], more: MoreMethods): Promise<RpcAnswer> => {
    if (batch.length === 0)
      return { status: 400, body: envelopeFailure('invalid_request', 'the batch is empty') };
    if (batch.length > batchAtMost)
      return {
        status: 400,
        body: envelopeFailure('invalid_request', `a batch holds at most ${batchAtMost} requests`),
      };
    const all = await Promise.all(batch.map((request) => answerOne(request, more)));
    const answers = all.map(({ answer }) => answer).filter((answer) => answer !== null);
    return answers.length === 0 ? { status: 204 } : { status: 200, body: answers };
  };

  return async (text, more = noMore) => {
    const parsed = readJson(text);
    if ('problem' in parsed)
      return { status: 400, body: envelopeFailure(parsed.code, parsed.problem) };
    if (Array.isArray(parsed.value)) return answerBatch(parsed.value, more);
    const { answer, malformed: refused } = await answerOne(parsed.value, more);
    return answer === null ? { status: 204 } : { status: refused ? 400 : 200, body: answer };
  };
};
