import { z } from 'zod';
import type { Failure } from '../../machines/task.ts';
import { hostOf } from '../network/addresses.ts';
import { type Compat, maxTokensFieldAt } from './compat.ts';
import { createOpenAiModel } from './openai/openai.ts';
import { textCallsIn } from './openai/openai-chat.ts';
import { isNoEndpoint } from './openai/openai-faults.ts';
import type { Model, ModelEvent, ModelRequest } from './port.ts';
import type { Timeouts } from './watchdog.ts';

type AskModel = (compat: Compat, request: ModelRequest) => Promise<ModelEvent | null>;

interface CompatAttempt {
  readonly last: ModelEvent | null;
  readonly compat: Compat;
}

/**
 * True for a status that other settings may cure; an outage or a refused key stays with any
 * settings.
 */
const isMisunderstood = (event: ModelEvent | null): boolean =>
  event?.type === 'failed' &&
  event.failure.facts['kind'] === 'http' &&
  [400, 422].some((status) => status === event.failure.facts['status']);

const variantsOf = (given: Compat, changes: readonly Partial<Compat>[]): readonly Compat[] =>
  [...changes, Object.assign({}, ...changes)].map((change) => ({ ...given, ...change }));

const firstUnderstood = async (
  ask: AskModel,
  request: ModelRequest,
  given: Compat,
  changes: readonly Partial<Compat>[],
) => {
  const first: CompatAttempt = { last: await ask(given, request), compat: given };
  if (!isMisunderstood(first.last)) return first;
  for (const compat of variantsOf(given, changes)) {
    const last = await ask(compat, request);
    if (!isMisunderstood(last)) return { last, compat };
  }
  return first;
};

const nextRequest = (
  request: ModelRequest,
  answer: Extract<ModelEvent, { type: 'answered' }>,
): ModelRequest => ({
  ...request,
  messages: [
    ...request.messages,
    { role: 'assistant', text: answer.text, calls: answer.calls, reasoning: answer.reasoning },
    ...answer.calls.map(({ id, tool }) => ({
      role: 'tool' as const,
      callId: id,
      tool,
      text: 'noted',
      ok: true,
    })),
    { role: 'user', text: 'Answer with the word done.' },
  ],
});

const tryCompat = async (
  ask: AskModel,
  request: ModelRequest,
  given: Compat,
): Promise<CompatAttempt> => {
  const otherField = given.maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  const first = await firstUnderstood(ask, request, given, [
    { streamOptions: false },
    { maxTokensField: otherField },
  ]);
  if (first.last?.type !== 'answered') return first;
  const printed = first.last.calls.length === 0 ? textCallsIn(first.last.text) : null;
  const takesText = printed !== null && printed.calls.length > 0;
  const answer = takesText ? { ...first.last, ...printed } : first.last;
  const compat = takesText ? { ...first.compat, textToolCalls: true } : first.compat;
  if (answer.calls.length === 0) return { last: answer, compat };
  const calls = answer.calls.map((call, index) => ({ ...call, id: call.id || `call_${index}` }));
  const changes = [{ toolResultName: true }, { replyAfterTools: true }];
  const second = await firstUnderstood(
    ask,
    nextRequest(request, { ...answer, calls }),
    compat,
    changes,
  );
  return isMisunderstood(second.last)
    ? { last: second.last, compat }
    : { last: answer, compat: second.compat };
};

const servedModelSchema = z.looseObject({
  id: z.string(),
  owned_by: z.unknown().optional(),
  /** vLLM, OpenRouter, LM Studio and llama.cpp, in this order. */
  max_model_len: z.unknown().optional(),
  context_length: z.unknown().optional(),
  max_context_length: z.unknown().optional(),
  meta: z.unknown().optional(),
});
const modelListSchema = z.object({ data: z.array(servedModelSchema).max(10_000) });
const propsSchema = z.object({
  default_generation_settings: z.object({ n_ctx: z.int().positive() }),
});

interface ServerModels {
  readonly kind: 'Ollama' | 'llama.cpp' | 'vLLM' | null;
  readonly models: readonly string[] | null;
  readonly contextWindow: number | null;
}

const unknownServer: ServerModels = { kind: null, models: null, contextWindow: null };
const usualWaitMs = 10_000;
const maxCharacters = 4_000_000;

interface Asked extends Pick<ProbeOptions, 'apiKey' | 'headers' | 'fetch'> {
  readonly waitMs?: number;
}

/** Null when there is no such document. A redirect never gets the key. */
const fetchJson = async (url: string, asked: Asked): Promise<unknown> => {
  const { apiKey, headers, fetch: send = fetch, waitMs = usualWaitMs } = asked;
  try {
    const response = await send(url, {
      headers: { authorization: `Bearer ${apiKey}`, ...headers },
      redirect: 'manual',
      signal: AbortSignal.timeout(waitMs),
    });
    const text = response.ok ? await response.text() : '';
    return text.length === 0 || text.length > maxCharacters ? null : JSON.parse(text);
  } catch {
    return null;
  }
};

/** Keeps the query. */
const withPath = (baseURL: string, pathname: string): string =>
  Object.assign(new URL(baseURL), { pathname }).href;

const kindByOwner: Readonly<Record<string, ServerModels['kind']>> = {
  library: 'Ollama',
  llamacpp: 'llama.cpp',
  vllm: 'vLLM',
};

type Server = Asked & Pick<ProbeOptions, 'baseURL'>;

const pathOf = (baseURL: string): string => new URL(baseURL).pathname.replace(/(?<!\/)\/+$/, '');

/** Null without a list at `GET /models`. */
const listedModels = async ({ baseURL, ...asked }: Server) => {
  const path = `${pathOf(baseURL)}/models`;
  const parsed = modelListSchema.safeParse(await fetchJson(withPath(baseURL, path), asked));
  return parsed.success ? parsed.data.data : null;
};

/** The models that a server lists; null without a list. Never rejects. */
export const servedModels = async (server: Server): Promise<readonly string[] | null> =>
  (await listedModels(server))?.map(({ id }) => id) ?? null;

/** Reads `GET /models` of a base URL, and `/props` of llama.cpp. Never rejects. */
const readServerModels = async ({
  baseURL,
  model,
  ...asked
}: ProbeOptions): Promise<ServerModels> => {
  const data = await listedModels({ baseURL, ...asked });
  if (data === null) return unknownServer;
  const kind =
    data
      .map(({ owned_by }) => kindByOwner[String(owned_by)] ?? null)
      .find((each) => each !== null) ?? null;
  const own = data.find(({ id }) => id === model);
  const listed = [own?.max_model_len, own?.context_length, own?.max_context_length].find(
    (size): size is number => typeof size === 'number' && size > 0,
  );
  const props =
    kind === 'llama.cpp'
      ? propsSchema.safeParse(await fetchJson(withPath(baseURL, '/props'), asked))
      : null;
  const served = props?.success === true ? props.data.default_generation_settings.n_ctx : null;
  return { kind, models: data.map(({ id }) => id), contextWindow: served ?? listed ?? null };
};

export interface ProbeOptions {
  readonly apiKey: string;
  readonly baseURL: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly model: string;
  readonly protocol: 'auto' | WireProtocol;
  readonly compat: Compat;
  readonly fetch?: typeof globalThis.fetch;
}
type WireProtocol = 'responses' | 'chat';

/** Null: the request did not get that far. */
export interface ProtocolProbe {
  readonly protocol: WireProtocol;
  readonly reachable: boolean;
  readonly authorised: boolean | null;
  readonly speaks: boolean | null;
  readonly knowsModel: boolean | null;
  readonly streams: boolean | null;
  readonly callsTools: boolean | null;
  readonly reportsUsage: boolean | null;
  readonly compat: Compat;
  readonly failure: Failure | null;
}

export interface Findings {
  readonly probes: readonly ProtocolProbe[];
  readonly use: WireProtocol | null;
  readonly configured: WireProtocol;
  readonly served: ServerModels;
}

const timeouts: Partial<Timeouts> = {
  connectMs: 20_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  turnMs: 120_000,
};
/** Models that reason need many tokens before their first text. */
const maxTokens = 2_000;

const requestFor = (model: string): ModelRequest => ({
  model,
  asker: { taskId: 'doctor', role: 'doctor', title: 'a probe', attempt: 1 },
  idempotencyKey: `doctor/${Date.now()}`,
  system: 'This is a test of tool calls.',
  messages: [{ role: 'user', text: 'Call the tool note once, with the text: ready' }],
  tools: [
    {
      name: 'note',
      description: 'Takes a note.',
      parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    },
  ],
  maxTokens,
});

const isNote = (text: string): boolean => {
  try {
    return typeof JSON.parse(text)?.text === 'string';
  } catch {
    return false;
  }
};

const notProbed = {
  authorised: null,
  speaks: null,
  knowsModel: null,
  streams: null,
  callsTools: null,
  reportsUsage: null,
};

const unreachableReasons: ReadonlySet<unknown> = new Set([
  'network',
  'certificate',
  'setup',
  'timeout_connect',
  'redirect',
]);
const afterFailure = (
  asked: Pick<ProtocolProbe, 'protocol' | 'compat'>,
  failure: Failure,
  { models }: ServerModels,
  model: string,
): ProtocolProbe => {
  const { kind, status } = failure.facts;
  const probe = { ...notProbed, ...asked, reachable: true, failure };
  if (unreachableReasons.has(kind)) return { ...probe, reachable: false };
  if (kind === 'auth') return { ...probe, authorised: false };
  const unlisted = models !== null && !models.includes(model);
  if (failure.facts['provider_code'] === 'model_not_found' || (status === 404 && unlisted))
    return { ...probe, authorised: true, knowsModel: false };
  if (isNoEndpoint(failure)) return { ...probe, authorised: true, speaks: false };
  if (kind === 'content_type') return { ...probe, authorised: true, streams: false };
  return probe;
};

const probeOne = async (
  options: ProbeOptions,
  protocol: WireProtocol,
  served: ServerModels,
): Promise<ProtocolProbe> => {
  const { apiKey, baseURL, headers = {}, model } = options;
  let requests = 0;
  const ask: AskModel = async (compat, request) => {
    let last: ModelEvent | null = null;
    const asked = createOpenAiModel({
      apiKey,
      baseURL,
      headers,
      protocol,
      compat,
      timeouts,
      fetch: options.fetch,
    });
    requests += 1;
    const idempotencyKey = `${request.idempotencyKey}/${protocol}/${requests}`;
    for await (const event of asked.ask(
      { ...request, idempotencyKey },
      new AbortController().signal,
    ))
      last = event;
    return last;
  };
  const given = {
    ...options.compat,
    maxTokensField: options.compat.maxTokensField ?? maxTokensFieldAt(hostOf(baseURL)),
  };
  const request = requestFor(model);
  const { last, compat } =
    protocol === 'chat'
      ? await tryCompat(ask, request, given)
      : { last: await ask(given, request), compat: given };
  if (last?.type === 'failed')
    return afterFailure({ protocol, compat }, last.failure, served, model);
  const answer = last?.type === 'answered' ? last : null;
  const callsTools =
    answer?.calls.some((call) => call.tool === 'note' && isNote(call.arguments)) ?? false;
  return {
    protocol,
    reachable: true,
    authorised: true,
    speaks: true,
    knowsModel: true,
    streams: true,
    callsTools,
    reportsUsage: answer?.estimated !== true,
    compat,
    failure: null,
  };
};

const neverAborted = new AbortController().signal;

/**
 * Sends one small request for a tool call to a model whose protocol is no choice. @returns why agents
 * could not work with it, or null
 */
export const probeOwnProtocol = async (asked: Model, name: string): Promise<string | null> => {
  let last: ModelEvent | null = null;
  for await (const event of asked.ask(requestFor(name), neverAborted)) last = event;
  if (last?.type === 'failed') return last.failure.message;
  const calls = last?.type === 'answered' ? last.calls : [];
  return calls.some((call) => call.tool === 'note' && isNote(call.arguments))
    ? null
    : 'it answers, but calls no tools';
};

const isFit = ({ callsTools }: ProtocolProbe): boolean => callsTools === true;

/** False when the server or the key is at fault, which another protocol cannot cure. */
const mayDiffer = ({ reachable, authorised, knowsModel }: ProtocolProbe): boolean =>
  reachable && authorised !== false && knowsModel !== false;

/**
 * Sends one small request for a tool call over the configured protocol, and over the other one for
 * `auto` or when the configured one does not work.
 */
export const probeModel = async (options: ProbeOptions): Promise<Findings> => {
  const auto: WireProtocol = hostOf(options.baseURL) === 'api.openai.com' ? 'responses' : 'chat';
  const configured = options.protocol === 'auto' ? auto : options.protocol;
  const served = await readServerModels(options);
  const first = await probeOne(options, configured, served);
  const wantsOther = mayDiffer(first) && (options.protocol === 'auto' || !isFit(first));
  const other: WireProtocol = configured === 'chat' ? 'responses' : 'chat';
  const probes = [first, ...(wantsOther ? [await probeOne(options, other, served)] : [])];
  return { probes, use: probes.find(isFit)?.protocol ?? null, configured, served };
};
