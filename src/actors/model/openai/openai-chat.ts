import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import type { CompletionUsage } from 'openai/resources/completions';
import { isJsonObject, type JsonObject, parseJson } from '../../../machines/json.ts';
import { hostOf } from '../../network/addresses.ts';
import { type Compat, defaultCompat, maxTokensFieldAt } from '../compat.ts';
import { dataUrlOf, imagesOf } from '../images.ts';
import type { Model, ModelMessage, ModelRequest, ModelUsage, ToolCall } from '../port.ts';
import { type ReasoningField, reasoningFields, thoughtsFor } from '../reasoning.ts';
import {
  type Assembly,
  cachedPlaces,
  cacheWritesIn,
  validCount,
  withOwnIds,
} from './openai-assembly.ts';
import { createOpenAiCall, keyHeader, type ProviderOptions } from './openai-call.ts';
import { createChatCalls } from './openai-chat-calls.ts';

interface TextCalls {
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

const [opening, closing] = ['<tool_call>', '</tool_call>'];
const fence = '```';
const maxEndsTried = 8;
/** Further tags stay text. */
const maxBlocks = 100;

const objectIn = (value: unknown): JsonObject | null => {
  const parsed = typeof value === 'string' ? parseJson(value) : value;
  return isJsonObject(parsed) ? parsed : null;
};

/** Parses `{"name": …, "arguments": {…}}`, or `parameters` in place of `arguments`; else null. */
const callIn = (text: string): ToolCall | null => {
  const { name, arguments: args, parameters = args, ...more } = objectIn(text) ?? {};
  const given = objectIn(parameters);
  return typeof name === 'string' && given !== null && Object.keys(more).length === 0
    ? { id: '', tool: name, arguments: JSON.stringify(given) }
    : null;
};

/** One call, or one on each line; empty when anything else is there. */
const callsInBlock = (text: string): readonly ToolCall[] => {
  const whole = callIn(text);
  if (whole !== null) return [whole];
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const calls = lines.map(callIn).filter((call) => call !== null);
  return calls.length === lines.length ? calls : [];
};

const callsInFence = (text: string): TextCalls | null => {
  const whole = text.trim();
  if (!whole.startsWith(fence) || !whole.endsWith(fence) || whole.length < 2 * fence.length)
    return null;
  const inside = whole.slice(fence.length, -fence.length);
  const call = callIn(inside.slice(Math.max(0, inside.indexOf('{'))));
  return call === null ? null : { text: '', calls: [call] };
};

/**
 * Parses from a start tag to its end tag. An argument may hold an end tag, so later ones are tried,
 * too.
 */
const blockAt = (
  text: string,
  from: number,
): { readonly calls: readonly ToolCall[]; readonly end: number } => {
  const begin = from + opening.length;
  let end = text.indexOf(closing, begin);
  const first = end < 0 ? text.length : end + closing.length;
  for (let tries = 0; end >= 0 && tries < maxEndsTried; tries += 1) {
    const calls = callsInBlock(text.slice(begin, end));
    if (calls.length > 0) return { calls, end: end + closing.length };
    end = text.indexOf(closing, end + closing.length);
  }
  const calls = first === text.length ? callsInBlock(text.slice(begin)) : [];
  return { calls, end: first };
};

/** Finds calls between `<tool_call>` tags or in one fenced block; everything else stays text. */
export const textCallsIn = (text: string): TextCalls => {
  const block = callsInFence(text);
  if (block !== null) return block;
  const calls: ToolCall[] = [];
  let rest = '';
  let at = 0;
  let from = text.indexOf(opening);
  for (let blocks = 0; from >= 0 && blocks < maxBlocks; blocks += 1) {
    const found = blockAt(text, from);
    rest += text.slice(at, found.calls.length === 0 ? found.end : from);
    calls.push(...found.calls);
    at = found.end;
    from = text.indexOf(opening, at);
  }
  return { text: `${rest}${text.slice(at)}`.trim(), calls };
};

const toolImageText = 'This is the image that you have read.';
const fillerReply = 'I have the results.';

type Images = ModelRequest['images'];

/** A plain text where there is no image, which every server takes. */
const userContent = (text: string, message: ModelMessage, images: Images) => {
  const shown = imagesOf(message, images).map((image) => ({
    type: 'image_url' as const,
    image_url: { url: dataUrlOf(image) },
  }));
  return shown.length === 0 ? text : [...shown, { type: 'text' as const, text }];
};

const encodeChatMessage = (
  message: ModelMessage,
  model: string,
  images: Images,
  { toolResultName }: Compat,
): ChatCompletionMessageParam => {
  if (message.role === 'user')
    return { role: 'user', content: userContent(message.text, message, images) };
  if (message.role === 'tool') {
    const named = toolResultName ? { name: message.tool } : {};
    return { role: 'tool', tool_call_id: message.callId, content: message.text, ...named };
  }
  const thinking = thoughtsFor(message.reasoning, 'chat', model);
  const calls = message.calls.map(({ id, tool, arguments: text }) => ({
    ...thinking?.extras?.[id],
    id,
    type: 'function' as const,
    function: { name: tool, arguments: text },
  }));
  return {
    role: 'assistant',
    content: message.text,
    ...(thinking?.field === undefined ? {} : { [thinking.field]: thinking.text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
};

/** A tool's answer is text alone: its images follow in a message of the user. */
const shownAfterTools = (
  results: readonly ModelMessage[],
  images: Images,
): readonly ChatCompletionMessageParam[] =>
  results.flatMap((result) => {
    const content = userContent(toolImageText, result, images);
    return typeof content === 'string' ? [] : [{ role: 'user' as const, content }];
  });

const encodeChatMessages = (
  { messages, model, images }: Pick<ModelRequest, 'messages' | 'model' | 'images'>,
  compat: Compat,
): ChatCompletionMessageParam[] => {
  let waiting: ModelMessage[] = [];
  return messages.flatMap((message, index) => {
    if (message.role === 'tool') waiting.push(message);
    const next = messages[index + 1];
    const seen = next?.role === 'tool' ? [] : shownAfterTools(waiting, images);
    if (next?.role !== 'tool') waiting = [];
    const needsReply =
      compat.replyAfterTools &&
      (message.role === 'user' ? messages[index - 1]?.role === 'tool' : seen.length > 0);
    const reply = { role: 'assistant' as const, content: fillerReply };
    const encoded = encodeChatMessage(message, model, images, compat);
    if (message.role === 'user') return [...(needsReply ? [reply] : []), encoded];
    return [encoded, ...(needsReply ? [reply] : []), ...seen];
  });
};

/** With `isKept` up to where a cache keeps what it read, which OpenRouter passes on to Anthropic. */
const encodeConversation = (
  system: string,
  turns: readonly ChatCompletionMessageParam[],
  { isKept }: { readonly isKept: boolean },
): ChatCompletionMessageParam[] => {
  const places = cachedPlaces(turns);
  const kept = (text: string) => [
    { type: 'text' as const, text, cache_control: { type: 'ephemeral' } },
  ];
  if (!isKept) return [{ role: 'system', content: system }, ...turns];
  const encoded = turns.map((message, at): ChatCompletionMessageParam => {
    const { role, content } = message;
    if (!places.has(at) || role === 'function' || !content) return message;
    if (typeof content === 'string') return { ...message, content: kept(content) };
    // The text comes last, so that the images before it are kept, too.
    const parts = content.map((part) => (part.type === 'text' ? { ...kept(part.text)[0] } : part));
    return { ...message, content: parts } as ChatCompletionMessageParam;
  });
  return [{ role: 'system', content: kept(system) }, ...encoded];
};

export const encodeChatRequest = (
  { model, system, messages, images, tools, maxTokens, wordsOnly = false }: ModelRequest,
  compat: Compat,
  host: string,
  marksCache = host === 'openrouter.ai',
): ChatCompletionCreateParamsStreaming => ({
  model,
  stream: true,
  ...(compat.streamOptions ? { stream_options: { include_usage: true } } : {}),
  messages: encodeConversation(system, encodeChatMessages({ messages, model, images }, compat), {
    isKept: marksCache && model.startsWith('anthropic/'),
  }),
  ...(tools.length === 0
    ? {}
    : {
        tools: tools.map(({ name, description, parameters }) => ({
          type: 'function' as const,
          function: { name, description, parameters: { ...parameters } },
        })),
        ...(wordsOnly ? { tool_choice: 'none' as const } : {}),
      }),
  [compat.maxTokensField ?? maxTokensFieldAt(host)]: maxTokens,
});

/** Some servers send the same text in two fields: the first that is not empty counts. */
const reasoningOf = (
  delta: object,
): { readonly field: ReasoningField; readonly text: string } | null => {
  const given = delta as Readonly<Record<string, unknown>>;
  for (const field of reasoningFields) {
    const text = given[field];
    if (typeof text === 'string' && text !== '') return { field, text };
  }
  return null;
};

/** In the chunk, in its choice or, from Groq, in `x_groq`. */
const usageIn = (part: unknown): CompletionUsage | null => {
  const { usage, x_groq } = (part ?? {}) as {
    readonly usage?: CompletionUsage | null;
    readonly x_groq?: { readonly usage?: CompletionUsage };
  };
  return usage ?? x_groq?.usage ?? null;
};

const decodeChatUsage = (usage: CompletionUsage): ModelUsage => ({
  inputTokens: validCount(usage.prompt_tokens),
  outputTokens: validCount(usage.completion_tokens),
  cachedTokens: validCount(usage.prompt_tokens_details?.cached_tokens),
  cacheWriteTokens: cacheWritesIn(usage.prompt_tokens_details),
});

/** With `textToolCalls`, an answer without calls is searched for calls in its text. */
export const createChatAssembly = ({
  textToolCalls,
}: Pick<Compat, 'textToolCalls'>): Assembly<ChatCompletionChunk> => {
  const calls = createChatCalls();
  let text = '';
  let chunks = 0;
  let finishReason: string | null = null;
  let usage: ModelUsage | null = null;
  let thought: ReturnType<typeof reasoningOf> = null;
  const printed = (): TextCalls | null =>
    textToolCalls && calls.count() === 0 ? textCallsIn(text) : null;

  return {
    add: (chunk) => {
      chunks += 1;
      const choice = chunk.choices?.[0];
      const counted = usageIn(chunk) ?? usageIn(choice);
      if (counted !== null) usage = decodeChatUsage(counted);
      if (choice === undefined) return { text: '', progress: false };
      // Some providers send an empty reason with every piece.
      if (typeof choice.finish_reason === 'string')
        finishReason = choice.finish_reason || finishReason;
      const delta = choice.delta ?? {};
      const added = typeof delta.content === 'string' ? delta.content : '';
      text += added;
      for (const part of delta.tool_calls ?? []) calls.add(part);
      const more = reasoningOf(delta);
      if (more !== null)
        thought = { field: thought?.field ?? more.field, text: (thought?.text ?? '') + more.text };
      const progress = added !== '' || (delta.tool_calls?.length ?? 0) > 0 || more !== null;
      return { text: added, progress };
    },
    end: () => {
      if (calls.count() > 0) finishReason ??= calls.areWhole() ? 'tool_calls' : null;
      else if (text !== '') finishReason ??= 'stop';
    },
    chunks: () => chunks,
    finishReason: () => finishReason,
    text: () => printed()?.text ?? text,
    calls: () => withOwnIds(printed()?.calls ?? calls.list()),
    usage: () => usage,
    thinking: () => {
      const extras = calls.extras();
      return thought === null && extras === undefined
        ? null
        : { protocol: 'chat', ...thought, extras };
    },
  };
};

/** A `chat.completion`, as some servers send it in place of a stream, has whole messages. */
const chunksOfCompletion = ({ choices, ...rest }: JsonObject): readonly ChatCompletionChunk[] => {
  const [first]: readonly unknown[] = Array.isArray(choices) ? choices : [];
  const message = isJsonObject(first) ? first['message'] : undefined;
  if (!isJsonObject(first) || !isJsonObject(message)) return [];
  const given = message['tool_calls'];
  const calls = Array.isArray(given) ? given.map((call, index) => ({ ...call, index })) : [];
  const delta = { ...message, tool_calls: calls };
  return [{ ...rest, choices: [{ ...first, delta }] } as unknown as ChatCompletionChunk];
};

export interface OpenAiChatOptions extends ProviderOptions {
  readonly compat?: Compat;
  /** Asks for models of Anthropic to be kept; unset: at openrouter.ai. */
  readonly marksCache?: boolean;
}

export const createOpenAiChatModel = ({
  compat = defaultCompat,
  marksCache,
  ...options
}: OpenAiChatOptions): Model => {
  const host = hostOf(options.baseURL);
  return createOpenAiCall<ChatCompletionChunk>(options, {
    open: (client, request, signal) =>
      client.chat.completions
        .create(encodeChatRequest(request, compat, host, marksCache), {
          signal,
          headers: keyHeader(request),
        })
        .asResponse(),
    createAssembly: () => createChatAssembly(compat),
    chunksOf: chunksOfCompletion,
  });
};
