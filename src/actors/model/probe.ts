import type { Failure } from '../../machines/task.ts';
import { type Compat, maxTokensFieldAt } from './compat.ts';
import { createOpenAiModel } from './openai.ts';
import { hostOf } from './openai-call.ts';
import { isNoEndpoint } from './openai-faults.ts';
import type { ModelEvent, ModelRequest } from './port.ts';
import { type AskModel, tryCompat } from './probe-compat.ts';
import { readServerModels, type ServerModels } from './served-models.ts';
import type { Timeouts } from './watchdog.ts';

export interface ProbeOptions {
  readonly apiKey: string;
  readonly baseURL: string;
  readonly model: string;
  readonly protocol: 'auto' | WireProtocol;
  readonly compat: Compat;
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
  const { apiKey, baseURL, model } = options;
  let requests = 0;
  const ask: AskModel = async (compat, request) => {
    let last: ModelEvent | null = null;
    const asked = createOpenAiModel({ apiKey, baseURL, protocol, compat, timeouts });
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
  const served = await readServerModels(options.baseURL, options.apiKey, options.model);
  const first = await probeOne(options, configured, served);
  const wantsOther = mayDiffer(first) && (options.protocol === 'auto' || !isFit(first));
  const other: WireProtocol = configured === 'chat' ? 'responses' : 'chat';
  const probes = [first, ...(wantsOther ? [await probeOne(options, other, served)] : [])];
  return { probes, use: probes.find(isFit)?.protocol ?? null, configured, served };
};
