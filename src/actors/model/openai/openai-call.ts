import OpenAI, { APIError } from 'openai';
import { isJsonObject, type JsonObject } from '../../../machines/json.ts';
import type { Failure } from '../../../machines/task.ts';
import { hostOf } from '../../network/addresses.ts';
import { createEventReader } from '../../process/line-splitter.ts';
import { errorIn } from '../error-body.ts';
import { cancelledCall, type Model, type ModelEvent, type ModelRequest } from '../port.ts';
import { estimatedUsage } from '../price.ts';
import { createWatchdog, defaultTimeouts, type Timeouts, type Watchdog } from '../watchdog.ts';
import type { Assembly } from './openai-assembly.ts';
import {
  callFailure,
  filteredAnswer,
  incompleteAnswer,
  tripFailure,
  unknownFinish,
  WireError,
} from './openai-faults.ts';

export interface ProviderOptions {
  readonly apiKey: string;
  /** Others that no error may repeat. */
  readonly secrets?: readonly string[];
  /** Includes the path: `https://api.openai.com/v1`. */
  readonly baseURL: string;
  /** Sent with each request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeouts?: Partial<Timeouts>;
  /** Unset: that of Node, which knows no proxy. */
  readonly fetch?: typeof globalThis.fetch;
  /** Epoch ms, for Retry-After dates. */
  readonly now?: () => number;
}

export interface StreamProtocol<Chunk> {
  /** Resolves to the parts of an answer whose status is good. */
  readonly open: (
    fetch: typeof globalThis.fetch,
    request: ModelRequest,
    signal: AbortSignal,
    onEnd: () => void,
  ) => Promise<AsyncIterable<Chunk>>;
  readonly createAssembly: () => Assembly<Chunk>;
}

export interface OpenAiProtocol<Chunk> extends Pick<StreamProtocol<Chunk>, 'createAssembly'> {
  /** Resolves to an answer whose status is good. */
  readonly open: (client: OpenAI, request: ModelRequest, signal: AbortSignal) => Promise<Response>;
  /** The chunks of an answer that came whole, as JSON; none for any other JSON. */
  readonly chunksOf?: (answer: JsonObject) => readonly Chunk[];
}

const usageMs = 2_000;
/** The most that a token takes on the wire; it bounds a server that does not stop. */
const bytesPerToken = 512;
const bytesFor = ({ maxTokens }: ModelRequest): number =>
  Math.max(8 * 1024 ** 2, maxTokens * bytesPerToken);
const finishReasons: ReadonlySet<string> = new Set([
  'stop',
  'tool_calls',
  'function_call',
  'length',
]);

const typeOf = ({ headers }: Response): string => headers.get('content-type') ?? '';
const isStream = (response: Response): boolean => typeOf(response).includes('text/event-stream');
const isJson = (response: Response): boolean => typeOf(response).includes('application/json');
/** Amazon Bedrock. */
const isAwsStream = (response: Response): boolean =>
  typeOf(response).includes('application/vnd.amazon.eventstream');
const otherContent = (response: Response): WireError =>
  new WireError(
    'content_type',
    `the provider answered with ${typeOf(response) || 'no content type'} instead of an event stream`,
  );

/**
 * A fetch that refuses redirects, other content than event streams and JSON, and too many bytes, and
 * feeds the watchdog.
 */
const watchedFetch =
  (send: typeof fetch, watchdog: Watchdog, bytesAtMost: number, onSend: () => void): typeof fetch =>
  async (input, init) => {
    onSend();
    const response = await send(input, { ...init, redirect: 'manual' });
    watchdog.headers();
    if (response.status >= 300 && response.status < 400)
      throw new WireError(
        'redirect',
        `the provider redirects (HTTP ${response.status}); set the final address as base URL`,
      );
    if (response.body === null) return response;
    if (response.ok && ![isStream, isJson, isAwsStream].some((isKind) => isKind(response)))
      throw otherContent(response);
    let bytes = 0;
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        watchdog.byte();
        bytes += chunk.length;
        if (bytes > bytesAtMost)
          throw new WireError(
            'flood',
            `the provider sent more than ${Math.round(bytesAtMost / 1024 ** 2)} MiB`,
          );
        controller.enqueue(chunk);
      },
    });
    const { status, headers } = response;
    return new Response(response.body.pipeThrough(heard), { status, headers });
  };

const writtenIn = <Chunk>(assembly: Assembly<Chunk>): string =>
  assembly.text() +
  assembly
    .calls()
    .map((call) => call.arguments)
    .join('');

const finalEvent = <Chunk>(request: ModelRequest, assembly: Assembly<Chunk>): ModelEvent => {
  const reason = assembly.finishReason();
  const counted = assembly.usage();
  const usage = counted ?? estimatedUsage(request, writtenIn(assembly));
  if (reason === 'content_filter') return { type: 'failed', failure: filteredAnswer, usage };
  if (reason === null || assembly.chunks() === 0)
    return { type: 'failed', failure: incompleteAnswer(assembly.chunks()), usage };
  if (!finishReasons.has(reason)) return { type: 'failed', failure: unknownFinish(reason), usage };
  const calls = assembly.calls();
  const text = assembly.text();
  const thinking = assembly.thinking();
  const reasoning = thinking === null ? undefined : { model: request.model, thinking };
  return {
    type: 'answered',
    text,
    calls,
    truncated: reason === 'length',
    usage,
    estimated: counted === null,
    reasoning,
  };
};

const openCall = (
  { timeouts, send }: { readonly timeouts: Timeouts; readonly send: typeof fetch },
  bytesAtMost: number,
  signal: AbortSignal,
) => {
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  let tripped: Failure | null = null;
  let sent = false;
  let usageTimer: NodeJS.Timeout | undefined;
  const watchdog = createWatchdog(timeouts, (which, ms) => {
    tripped = tripFailure(which, ms);
    stop();
  });
  signal.addEventListener('abort', stop, { once: true });
  return {
    signal: abort.signal,
    fetch: watchedFetch(send, watchdog, bytesAtMost, () => {
      sent = true;
    }),
    progress: watchdog.progress,
    awaitUsage: () => {
      usageTimer ??= setTimeout(stop, usageMs);
    },
    trip: (): Failure | null => tripped,
    sent: (): boolean => sent,
    close: () => {
      clearTimeout(usageTimer);
      watchdog.stop();
      signal.removeEventListener('abort', stop);
      stop();
    },
  };
};

/** The client of the package, which reads one shape of errors only. */
class Client extends OpenAI {
  protected override makeStatusError(
    status: number,
    body: unknown,
    text: string | undefined,
    headers: Headers,
  ): APIError {
    return APIError.generate(status, { error: errorIn(body ?? text) }, undefined, headers);
  }
}

const withoutError = (chunk: unknown, headers: Headers): unknown => {
  const given: unknown = Array.isArray(chunk) ? chunk[0] : chunk;
  if (isJsonObject(given) && (given['error'] || given['object'] === 'error'))
    throw new APIError(undefined, errorIn(chunk), undefined, headers);
  return chunk;
};

/**
 * The data of the events of an answer. The package's own reader copies and searches all that it has
 * of an event with each piece, which takes minutes for a long event in small pieces.
 */
async function* eventsIn({ body }: Response): AsyncGenerator<string> {
  const utf8 = new TextDecoder();
  let events: string[] = [];
  const reader = createEventReader({
    // The bytes of the answer are limited.
    longest: Number.POSITIVE_INFINITY,
    onData: (data) => events.push(data),
    onTooLong: () => {},
  });
  for await (const bytes of body ?? []) {
    reader.push(utf8.decode(bytes, { stream: true }));
    yield* events;
    events = [];
  }
}

/**
 * The chunks of an answer, up to its end; returns early when the socket ends without one.
 * @throws APIError when one reports an error of the provider; SyntaxError when one is not JSON
 */
async function* chunksIn<Chunk>(
  response: Response,
  { chunksOf = () => [] }: OpenAiProtocol<Chunk>,
  onEnd: () => void,
): AsyncGenerator<Chunk> {
  if (isStream(response)) {
    for await (const data of eventsIn(response)) {
      if (data.startsWith('[DONE]')) return onEnd();
      yield withoutError(JSON.parse(data), response.headers) as Chunk;
    }
    return;
  }
  const answer = withoutError(await response.json(), response.headers);
  const chunks = isJsonObject(answer) ? chunksOf(answer) : [];
  if (chunks.length === 0) throw otherContent(response);
  yield* chunks;
  onEnd();
}

/** Yields text; returns when the answer is whole, which may be long before the socket closes. */
async function* textsOf<Chunk>(
  chunks: AsyncIterable<Chunk>,
  assembly: Assembly<Chunk>,
  call: ReturnType<typeof openCall>,
): AsyncGenerator<ModelEvent> {
  for await (const chunk of chunks) {
    const { text, progress } = assembly.add(chunk);
    if (progress) call.progress();
    if (text !== '') yield { type: 'text', delta: text };
    if (assembly.finishReason() === null) continue;
    if (assembly.usage() !== null) return;
    call.awaitUsage();
  }
}

/** The package has an option for the key, but sends it only when a subclass names the header. */
export const keyHeader = ({ idempotencyKey }: ModelRequest): Readonly<Record<string, string>> => ({
  'Idempotency-Key': idempotencyKey,
});

/** A streamed call that is tried once: the machines retry. */
export const createStreamedCall = <Chunk>(
  { apiKey, secrets = [], baseURL, now = Date.now, ...options }: ProviderOptions,
  protocol: StreamProtocol<Chunk>,
): Model => {
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const send: typeof fetch = options.fetch ?? ((...given) => fetch(...given));
  return {
    name: hostOf(baseURL),
    disclaimer: null,
    async *ask(request, signal): AsyncGenerator<ModelEvent> {
      const call = openCall({ timeouts, send }, bytesFor(request), signal);
      const assembly = protocol.createAssembly();
      let failure: Failure | null = null;
      try {
        signal.throwIfAborted();
        const chunks = await protocol.open(call.fetch, request, call.signal, assembly.end);
        yield* textsOf(chunks, assembly, call);
      } catch (error) {
        const { origin } = new URL(baseURL);
        const about = { now: now(), secrets: [apiKey, ...secrets], origin };
        failure = callFailure(error, { ...about, sent: call.sent() });
      } finally {
        call.close();
      }
      // An answer that was stopped also fails in some way, so the reasons to stop come first.
      const stopped = signal.aborted
        ? cancelledCall
        : assembly.finishReason() === null
          ? (call.trip() ?? failure)
          : null;
      if (stopped === null) return yield finalEvent(request, assembly);
      // What was refused costs nothing; what we stopped, or what broke off, may.
      const isCut =
        assembly.chunks() > 0 || (call.sent() && (signal.aborted || call.trip() !== null));
      const usage =
        assembly.usage() ?? (isCut ? estimatedUsage(request, writtenIn(assembly)) : undefined);
      yield { type: 'failed', failure: stopped, usage };
    },
  };
};

/** A streamed call with the openai package, without its retries. */
export const createOpenAiCall = <Chunk>(
  options: ProviderOptions,
  protocol: OpenAiProtocol<Chunk>,
): Model => {
  const { apiKey, baseURL, headers = {} } = options;
  const timeout = options.timeouts?.turnMs ?? defaultTimeouts.turnMs;
  const endpoint = new URL(baseURL);
  const fixed = {
    apiKey,
    defaultHeaders: headers,
    maxRetries: 0,
    timeout,
    logLevel: 'off' as const,
    defaultQuery: Object.fromEntries(endpoint.searchParams),
  };
  endpoint.search = '';
  return createStreamedCall<Chunk>(options, {
    open: async (fetch, request, signal, onEnd) => {
      const client = new Client({ ...fixed, baseURL: endpoint.href, fetch });
      return chunksIn(await protocol.open(client, request, signal), protocol, onEnd);
    },
    createAssembly: protocol.createAssembly,
  });
};
