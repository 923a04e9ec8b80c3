import { z } from 'zod';
import { readJson } from '../json-rpc.ts';
import type { McpBackend, McpCall } from './backend.ts';
import {
  answerRequest,
  initializeAnswer,
  type McpIdentity,
  McpRequestError,
  mcpErrors,
} from './requests.ts';
import { answerStateless, isStatelessRequest } from './stateless.ts';

const requestIdSchema = z.union([z.string().max(1_000), z.number()]);
type RequestId = z.infer<typeof requestIdSchema>;

/** In UTF-16 units, of a name or a value of the outermost object that is looked at. */
const longestToken = 6_100;

interface IdScan {
  /** Takes the next piece of the message. @returns the id once it was read, else null */
  read(piece: string): RequestId | null;
}

const idIn = (token: string): RequestId | null => {
  try {
    return requestIdSchema.safeParse(JSON.parse(token)).data ?? null;
  } catch {
    return null;
  }
};

const [quote, backslash, colon, comma] = [34, 92, 58, 44];
const isOpening = (code: number): boolean => code === 123 || code === 91;
const isClosing = (code: number): boolean => code === 125 || code === 93;

/**
 * Finds the id of a request that is too long to be kept and parsed. The official client writes it
 * behind the params.
 */
const createIdScan = (): IdScan => {
  let depth = 0;
  let isQuoted = false;
  let isEscaped = false;
  let name = '';
  let token = '';
  let found: RequestId | null = null;

  const endToken = (): void => {
    if (name === '"id"') found ??= idIn(token);
    name = '';
    token = '';
  };
  /** @returns whether the sign stands between the names and values of the outermost object */
  const takeSign = (code: number): boolean => {
    if (isEscaped) isEscaped = false;
    else if (isQuoted && code === backslash) isEscaped = true;
    else if (code === quote) isQuoted = !isQuoted;
    else if (isQuoted) return false;
    else if (isOpening(code)) {
      depth += 1;
      return depth === 1;
    } else if (isClosing(code)) {
      if (depth === 1) endToken();
      depth -= 1;
    } else if (depth === 1 && code === comma) {
      endToken();
      return true;
    } else if (depth === 1 && code === colon) {
      name = token.trim();
      token = '';
      return true;
    }
    return false;
  };

  return {
    read: (piece) => {
      for (let at = 0; at < piece.length && found === null; at += 1) {
        const isBetween = takeSign(piece.charCodeAt(at));
        if (depth === 1 && !isBetween && token.length < longestToken) token += piece[at];
      }
      return found;
    },
  };
};

export const mcpMessageSchema = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: requestIdSchema.optional(),
  method: z.string(),
  params: z.looseObject({}).optional(),
});
type McpMessage = z.infer<typeof mcpMessageSchema>;

const rpcAnswerSchema = z.union([
  z.looseObject({
    id: requestIdSchema,
    result: z.unknown().refine((value) => value !== undefined),
  }),
  z.looseObject({ id: requestIdSchema.nullish(), error: z.looseObject({}) }),
]);
const cancelledSchema = z.looseObject({ requestId: requestIdSchema });
const progressSchema = z.looseObject({ _meta: z.looseObject({ progressToken: requestIdSchema }) });

const messagesAtMost = 20;
const openAtMost = 100;
/** The reason of an abort that the client asked for. */
const cancelled = 'cancelled';

export const errorMessage = (id: RequestId | null, error: McpRequestError) => ({
  jsonrpc: '2.0',
  id,
  error: {
    code: error.code,
    message: error.message,
    ...(error.data === undefined ? {} : { data: error.data }),
  },
});

export const invalidRequest = (message: string): McpRequestError =>
  new McpRequestError(mcpErrors.invalidRequest, message);

export interface McpSession {
  /** Takes one message, or a batch, as text. Resolves when it is answered. */
  take(text: string): Promise<void>;
  /** Takes a message that is longer than what is read, in pieces, and says so to its request. */
  refuseLong(longest: number): (piece: string | null) => void;
  /** Ends the waits; open requests are still answered. */
  close(): void;
}

export interface McpSessionOptions {
  readonly backend: McpBackend;
  readonly identity: McpIdentity;
  readonly send: (message: object) => void;
  /** True when each request stands alone, and `initialize` may come at any time, or never. */
  readonly isStateless?: boolean;
}

const progressReports = (params: unknown, send: McpSessionOptions['send']): McpCall['report'] => {
  const { data } = progressSchema.safeParse(params);
  if (data === undefined) return () => {};
  const { progressToken } = data._meta;
  let progress = 0;
  return (message) => {
    progress += 1;
    const params = { progressToken, progress, message };
    send({ jsonrpc: '2.0', method: 'notifications/progress', params });
  };
};

type OpenRequests = Map<RequestId, AbortController>;

/** Answers requests, each once. Null for a request that the client cancelled: it wants no answer. */
const createSessionAnswers = (
  { backend, identity, send, isStateless = false }: McpSessionOptions,
  open: OpenRequests,
): ((id: RequestId, message: McpMessage) => Promise<object | null>) => {
  let isInitialized = false;

  const resultOf = async (
    id: RequestId,
    message: McpMessage,
    { signal }: AbortController,
  ): Promise<object> => {
    const { method, params } = message;
    const report = progressReports(params, (progress) => {
      if (open.get(id)?.signal === signal) send(progress);
    });
    if (isStatelessRequest(message))
      return answerStateless(backend, identity, { signal, report }, message);
    if (method === 'ping') return {};
    if (method === 'initialize') {
      if (isInitialized) throw invalidRequest('initialize was sent before');
      const result = initializeAnswer(identity, params);
      isInitialized = !isStateless;
      return result;
    }
    if (!isInitialized && !isStateless)
      throw invalidRequest(`send initialize before ${method.slice(0, 100)}`);
    return answerRequest(backend, { signal, report }, method, params);
  };

  return async (id, message) => {
    if (open.has(id))
      return errorMessage(id, invalidRequest('a request with this id is not answered yet'));
    if (open.size >= openAtMost)
      return errorMessage(
        id,
        invalidRequest(`at most ${openAtMost} requests may be open; wait for answers`),
      );
    const ends = new AbortController();
    open.set(id, ends);
    try {
      const result = await resultOf(id, message, ends);
      return ends.signal.reason === cancelled ? null : { jsonrpc: '2.0', id, result };
    } catch (error) {
      if (ends.signal.reason === cancelled) return null;
      const known =
        error instanceof McpRequestError
          ? error
          : new McpRequestError(mcpErrors.internal, 'internal error');
      return errorMessage(id, known);
    } finally {
      open.delete(id);
    }
  };
};

/** One client of the Model Context Protocol, on a connection that keeps its messages in order. */
export const createMcpSession = (options: McpSessionOptions): McpSession => {
  const { send } = options;
  const open: OpenRequests = new Map();
  const answerTo = createSessionAnswers(options, open);

  const takeOne = async (given: unknown): Promise<object | null> => {
    const { data: message } = mcpMessageSchema.safeParse(given);
    if (message === undefined) {
      if (rpcAnswerSchema.safeParse(given).success) return null;
      return errorMessage(
        null,
        invalidRequest('not a JSON-RPC 2.0 request, notification or answer'),
      );
    }
    if (message.id !== undefined) return answerTo(message.id, message);
    if (message.method === 'notifications/cancelled') {
      const { data } = cancelledSchema.safeParse(message.params);
      if (data !== undefined) open.get(data.requestId)?.abort(cancelled);
    }
    return null;
  };

  const takeBatch = async (batch: readonly unknown[]): Promise<object | null> => {
    if (batch.length === 0 || batch.length > messagesAtMost)
      return errorMessage(null, invalidRequest(`a batch holds 1 to ${messagesAtMost} messages`));
    const answers = (await Promise.all(batch.map(takeOne))).filter((answer) => answer !== null);
    return answers.length === 0 ? null : answers;
  };

  return {
    take: async (text) => {
      const read = readJson(text);
      const answer =
        'problem' in read
          ? errorMessage(
              null,
              read.code === 'parse_error'
                ? new McpRequestError(mcpErrors.parse, 'the message is not JSON')
                : invalidRequest(read.problem),
            )
          : await (Array.isArray(read.value) ? takeBatch(read.value) : takeOne(read.value));
      if (answer !== null) send(answer);
    },
    refuseLong: (longest) => {
      const scan = createIdScan();
      let isAnswered = false;
      return (piece) => {
        const id = piece === null ? null : scan.read(piece);
        if (isAnswered || (id === null && piece !== null)) return;
        isAnswered = true;
        send(errorMessage(id, invalidRequest(`a message holds at most ${longest} characters`)));
      };
    },
    close: () => {
      for (const ends of open.values()) ends.abort();
    },
  };
};
