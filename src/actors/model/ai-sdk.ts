import type {
  APICallError,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import { APIConnectionError, APIError } from 'openai';
import { isJsonObject, parseJson } from '../../machines/json.ts';
import { type CloudAccess, openSdk, type SdkType } from './ai-sdk-packages.ts';
import { type CacheMarks, type CacheMode, cacheMarks } from './cache-marks.ts';
import { errorIn } from './error-body.ts';
import { imagesOf } from './images.ts';
import { type Assembly, cachedPlaces, validCount, withOwnIds } from './openai/openai-assembly.ts';
import { createStreamedCall, keyHeader, type ProviderOptions } from './openai/openai-call.ts';
import type { Model, ModelMessage, ModelRequest, ModelUsage, ToolCall } from './port.ts';
import { type PartOptions, type Thoughts, thoughtsFor } from './reasoning.ts';

export interface AiSdkOptions extends ProviderOptions {
  readonly type: SdkType;
  readonly cache?: CacheMode;
  readonly access?: CloudAccess;
}

const given = (options: PartOptions | undefined) =>
  options === undefined ? {} : { providerOptions: options };

const encodeAssistant = (
  { text, calls, reasoning }: Extract<ModelMessage, { role: 'assistant' }>,
  model: string,
): LanguageModelV3Message[] => {
  const thoughts = thoughtsFor(reasoning, 'parts', model);
  const marks = new Map(Object.entries(thoughts?.marks ?? {}));
  const parts = [
    ...(text === '' ? [] : [{ type: 'text' as const, text, ...given(marks.get('')) }]),
    ...calls.map(({ id, tool, arguments: written }) => ({
      type: 'tool-call' as const,
      toolCallId: id,
      toolName: tool,
      input: parseJson(written) ?? {},
      ...given(marks.get(id)),
    })),
  ];
  // Reasoning comes before the parts that it led to.
  const content = [...parts, null].flatMap((part, place) => [
    ...(thoughts?.items ?? [])
      .filter(({ after }) => after === place)
      .map(({ text: thought, options }) => ({
        type: 'reasoning' as const,
        text: thought,
        ...given(options),
      })),
    ...(part === null ? [] : [part]),
  ]);
  // Some providers refuse a message without content.
  return content.length === 0 ? [] : [{ role: 'assistant', content }];
};

const encodeMessage = (
  message: ModelMessage,
  { model, images }: Pick<ModelRequest, 'model' | 'images'>,
): LanguageModelV3Message[] => {
  if (message.role === 'assistant') return encodeAssistant(message, model);
  const shown = imagesOf(message, images);
  if (message.role === 'user') {
    const files = shown.map(({ mediaType, data }) => ({ type: 'file' as const, mediaType, data }));
    return [{ role: 'user', content: [...files, { type: 'text', text: message.text }] }];
  }
  const { callId: toolCallId, tool: toolName, text: value, ok } = message;
  const seen = shown.map(({ mediaType, data }) => ({
    type: 'image-data' as const,
    mediaType,
    data,
  }));
  const output =
    seen.length === 0
      ? { type: ok ? ('text' as const) : ('error-text' as const), value }
      : { type: 'content' as const, value: [{ type: 'text' as const, text: value }, ...seen] };
  return [{ role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] }];
};

/** The results of the calls of one answer are one message. */
const withJoinedResults = (
  messages: readonly LanguageModelV3Message[],
): LanguageModelV3Message[] => {
  const joined: LanguageModelV3Message[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.role === 'tool' && message.role === 'tool') last.content.push(...message.content);
    else joined.push(message);
  }
  return joined;
};

/** With places up to which the provider keeps what it read. */
export const encodePrompt = (
  {
    system,
    messages,
    model,
    images,
  }: Pick<ModelRequest, 'system' | 'messages' | 'model' | 'images'>,
  { onSystem, onTurns }: CacheMarks,
): LanguageModelV3Prompt => {
  const encoded = withJoinedResults(
    messages.flatMap((message) => encodeMessage(message, { model, images })),
  );
  const places = cachedPlaces(encoded);
  return [
    { role: 'system', content: system, ...given(onSystem) },
    ...encoded.map((message, at) => (places.has(at) ? { ...message, ...given(onTurns) } : message)),
  ];
};

/** Null where the provider counted nothing. */
const decodeUsage = ({ inputTokens, outputTokens }: LanguageModelV3Usage): ModelUsage | null =>
  inputTokens.total === undefined && outputTokens.total === undefined
    ? null
    : {
        inputTokens: validCount(inputTokens.total),
        outputTokens: validCount(outputTokens.total),
        cachedTokens: validCount(inputTokens.cacheRead),
        cacheWriteTokens: validCount(inputTokens.cacheWrite),
      };

const finishReasons: Readonly<Record<string, string>> = {
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
};

/** Without its package, which is loaded when it is used. */
const isCallError = (error: Error): error is APICallError => error.name === 'AI_APICallError';

/** As the openai package would throw it, whose errors are classified. */
const asOpenAiError = (error: unknown): unknown => {
  if (!(error instanceof Error))
    return new APIError(undefined, errorIn(error), undefined, undefined);
  if (!isCallError(error)) return error.cause ?? error;
  const { statusCode, responseHeaders, responseBody = '', message, cause } = error;
  if (statusCode === undefined)
    return new APIConnectionError({ message, ...(cause instanceof Error ? { cause } : {}) });
  // AWS names the error in a header: `ThrottlingException:http://…`.
  const [type] = (responseHeaders?.['x-amzn-errortype'] ?? '').split(':');
  const said = { ...errorIn(parseJson(responseBody) ?? responseBody), ...(type ? { type } : {}) };
  return APIError.generate(statusCode, { error: said }, undefined, new Headers(responseHeaders));
};

/** The HTTP status of an exception in the event stream of AWS. */
const awsStatus: Readonly<Record<string, number>> = {
  throttlingException: 429,
  validationException: 400,
  modelStreamErrorException: 500,
  internalServerException: 500,
  serviceUnavailableException: 503,
};

/** The package tells an exception of AWS without its name. @throws APIError */
const refuseException = (raw: unknown): void => {
  const [name = '', error] = Object.entries(isJsonObject(raw) ? raw : {})[0] ?? [];
  if (!name.endsWith('Exception')) return;
  const said = { ...errorIn(error), code: awsStatus[name] ?? name };
  throw new APIError(undefined, said, undefined, undefined);
};

const createPartsAssembly = (): Assembly<LanguageModelV3StreamPart> => {
  let [text, chunks] = ['', 0];
  let finishReason: string | null = null;
  let usage: ModelUsage | null = null;
  const calls: ToolCall[] = [];
  const thoughts = new Map<string, { after: number; text: string; options: PartOptions }>();
  const marks = new Map<string, PartOptions>();

  const think = (id: string, delta: string, options: PartOptions | undefined): void => {
    const before = thoughts.get(id) ?? { after: Number(text !== '') + calls.length, text: '' };
    const known = 'options' in before ? before.options : {};
    thoughts.set(id, { ...before, text: before.text + delta, options: { ...known, ...options } });
  };
  const mark = (id: string, options: PartOptions | undefined): void => {
    if (options !== undefined) marks.set(id, { ...marks.get(id), ...options });
  };
  const take = (part: LanguageModelV3StreamPart): { text: string; progress: boolean } => {
    const said = { text: '', progress: true };
    switch (part.type) {
      case 'text-delta':
        text += part.delta;
        mark('', part.providerMetadata);
        return { text: part.delta, progress: part.delta !== '' };
      case 'text-end':
        mark('', part.providerMetadata);
        return said;
      case 'reasoning-start':
      case 'reasoning-end':
        think(part.id, '', part.providerMetadata);
        return said;
      case 'reasoning-delta':
        think(part.id, part.delta, part.providerMetadata);
        return said;
      case 'tool-input-delta':
        return said;
      case 'tool-call':
        calls.push({ id: part.toolCallId, tool: part.toolName, arguments: part.input });
        mark(part.toolCallId, part.providerMetadata);
        return said;
      case 'finish': {
        const { unified, raw } = part.finishReason;
        finishReason = finishReasons[unified] ?? (unified === 'other' ? (raw ?? null) : unified);
        usage = decodeUsage(part.usage);
        return said;
      }
      case 'raw':
        refuseException(part.rawValue);
        return { ...said, progress: false };
      case 'error':
        throw asOpenAiError(part.error);
      default:
        return { ...said, progress: false };
    }
  };
  return {
    add: (part) => {
      chunks += 1;
      return take(part);
    },
    // A part of its own says the end.
    end: () => {},
    chunks: () => chunks,
    finishReason: () => finishReason,
    text: () => text,
    calls: () => withOwnIds(calls),
    usage: () => usage,
    thinking: (): Thoughts | null =>
      thoughts.size === 0 && marks.size === 0
        ? null
        : { protocol: 'parts', items: [...thoughts.values()], marks: Object.fromEntries(marks) },
  };
};

/** A provider with a protocol of its own, by its package of the AI SDK. */
export const createAiSdkModel = ({
  type,
  cache = 'auto',
  access,
  ...options
}: AiSdkOptions): Model => {
  const { apiKey, baseURL, headers = {} } = options;
  const open = openSdk[type]({ apiKey, baseURL, headers, access, send: options.fetch ?? fetch });
  const isAws = type === 'bedrock';
  return createStreamedCall<LanguageModelV3StreamPart>(options, {
    open: async (fetch, request, signal) => {
      const { model: name, tools, maxTokens, wordsOnly = false } = request;
      const model = await open(fetch, name);
      // Without tools the package for AWS leaves out all calls and results.
      const forbidden = wordsOnly && tools.length > 0 && !isAws;
      const opened = model.doStream({
        prompt: encodePrompt(request, cacheMarks(type, name, cache)),
        maxOutputTokens: maxTokens,
        tools: tools.map(({ name: tool, description, parameters }) => ({
          type: 'function' as const,
          name: tool,
          description,
          inputSchema: { ...parameters },
        })),
        ...(forbidden ? { toolChoice: { type: 'none' } } : {}),
        ...(isAws ? { includeRawChunks: true } : {}),
        headers: keyHeader(request),
        abortSignal: signal,
        providerOptions: { anthropic: { toolStreaming: false } },
      });
      const { stream } = await Promise.resolve(opened).catch((error: unknown) => {
        throw asOpenAiError(error);
      });
      return stream;
    },
    createAssembly: createPartsAssembly,
  });
};
