import OpenAI from 'openai';
import type { Failure } from '../../machines/task.ts';
import { type Assembly, createAssembly, encodeRequest, type MaxTokensField } from './openai-codec.ts';
import { cancelled, failureOf, filtered, incomplete, tripFailure, WireError } from './openai-faults.ts';
import type { Model, ModelEvent, ModelRequest } from './port.ts';
import { createWatchdog, defaultTimeouts, type Timeouts, type Watchdog } from './watchdog.ts';

export interface OpenAiChatOptions {
  readonly apiKey: string;
  /** With its path, such as `https://api.openai.com/v1`. */
  readonly baseURL: string;
  readonly maxTokensField?: MaxTokensField;
  readonly timeouts?: Partial<Timeouts>;
  /** Epoch ms, for Retry-After dates. */
  readonly now?: () => number;
}

/** How long after its end an answer may still bring its usage (ms). */
const usageMs = 2_000;
const charactersPerToken = 4;

/** fetch that follows no redirect with the key, takes only event streams for an answer, and feeds the watchdog. */
const watchedFetch =
  (watchdog: Watchdog): typeof fetch =>
  async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' });
    watchdog.headers();
    if (response.status >= 300 && response.status < 400)
      throw new WireError(
        'redirect',
        `the provider redirects (HTTP ${response.status}); set the final address as base URL`,
      );
    if (!response.ok || response.body === null) return response;
    const type = response.headers.get('content-type') ?? '';
    if (!type.includes('text/event-stream'))
      throw new WireError(
        'content_type',
        `the provider answered with ${type || 'no content type'} instead of an event stream`,
      );
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        watchdog.byte();
        controller.enqueue(chunk);
      },
    });
    const { status, headers } = response;
    return new Response(response.body.pipeThrough(heard), { status, headers });
  };

const estimated = ({ system, messages }: ModelRequest, answer: string) => ({
  inputTokens: Math.ceil((system.length + JSON.stringify(messages).length) / charactersPerToken),
  outputTokens: Math.ceil(answer.length / charactersPerToken),
  cachedTokens: 0,
});

/** The verdict over an answer that ended: only what the provider called finished counts. */
const verdict = (request: ModelRequest, assembly: Assembly): ModelEvent => {
  const reason = assembly.finishReason();
  if (reason === 'content_filter') return { type: 'failed', failure: filtered };
  if (reason === null || assembly.chunks() === 0) return { type: 'failed', failure: incomplete(assembly.chunks()) };
  const calls = assembly.calls();
  const text = assembly.text();
  const written = text + calls.map((call) => call.arguments).join('');
  const usage = assembly.usage() ?? estimated(request, written);
  return { type: 'answered', text, calls, truncated: reason === 'length', usage };
};

/** Chat Completions over the openai package, streamed, without its retries: the machines retry, visibly. */
export const createOpenAiChatModel = (options: OpenAiChatOptions): Model => {
  const { apiKey, baseURL, now = Date.now } = options;
  const host = new URL(baseURL).host;
  const field = options.maxTokensField ?? (host === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens');
  const timeouts = { ...defaultTimeouts, ...options.timeouts };

  return {
    name: host,
    disclaimer: null,
    async *ask(request, signal): AsyncGenerator<ModelEvent> {
      const abort = new AbortController();
      const onAbort = (): void => abort.abort();
      signal.addEventListener('abort', onAbort, { once: true });
      let trip: Failure | null = null;
      const watchdog = createWatchdog(timeouts, (which, ms) => {
        trip = tripFailure(which, ms);
        abort.abort();
      });
      const client = new OpenAI({
        apiKey,
        baseURL,
        maxRetries: 0,
        logLevel: 'off',
        timeout: timeouts.turnMs,
        fetch: watchedFetch(watchdog),
      });
      const assembly = createAssembly();
      let usageTimer: NodeJS.Timeout | undefined;
      try {
        if (signal.aborted) throw new Error('aborted');
        const stream = await client.chat.completions.create(encodeRequest(request, field), { signal: abort.signal });
        for await (const chunk of stream) {
          const { text, progress } = assembly.add(chunk);
          if (progress) watchdog.progress();
          if (text !== '') yield { type: 'text', delta: text };
          if (assembly.finishReason() === null) continue;
          if (assembly.usage() !== null) break;
          usageTimer ??= setTimeout(onAbort, usageMs);
        }
        const ended = signal.aborted ? cancelled : assembly.finishReason() === null ? trip : null;
        yield ended === null ? verdict(request, assembly) : { type: 'failed', failure: ended };
      } catch (error) {
        if (signal.aborted) yield { type: 'failed', failure: cancelled };
        else if (assembly.finishReason() !== null) yield verdict(request, assembly);
        else yield { type: 'failed', failure: trip ?? failureOf(error, now()) };
      } finally {
        clearTimeout(usageTimer);
        watchdog.stop();
        signal.removeEventListener('abort', onAbort);
        abort.abort();
      }
    },
  };
};
