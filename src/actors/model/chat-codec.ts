import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import type { CompletionUsage } from 'openai/resources/completions';
import { type Compat, maxTokensFieldAt } from './compat.ts';
import { type Assembly, callsInOrder, validCount } from './openai-assembly.ts';
import type { ModelMessage, ModelRequest, ModelUsage, ToolCall } from './port.ts';
import { type ReasoningField, reasoningFields, thoughtsFor } from './reasoning.ts';
import { type TextCalls, textCallsIn } from './text-calls.ts';

const fillerReply = 'I have the results.';

const encodeChatMessage = (
  message: ModelMessage,
  model: string,
  { toolResultName }: Compat,
): ChatCompletionMessageParam => {
  if (message.role === 'user') return { role: 'user', content: message.text };
  if (message.role === 'tool') {
    const named = toolResultName ? { name: message.tool } : {};
    return { role: 'tool', tool_call_id: message.callId, content: message.text, ...named };
  }
  const calls = message.calls.map(({ id, tool, arguments: text }) => ({
    id,
    type: 'function' as const,
    function: { name: tool, arguments: text },
  }));
  const thinking = thoughtsFor(message.reasoning, 'chat', model);
  return {
    role: 'assistant',
    content: message.text,
    ...(thinking === null ? {} : { [thinking.field]: thinking.text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
};

const encodeChatMessages = (
  messages: readonly ModelMessage[],
  model: string,
  compat: Compat,
): ChatCompletionMessageParam[] =>
  messages.flatMap((message, index) => {
    const needsReply =
      compat.replyAfterTools && message.role === 'user' && messages[index - 1]?.role === 'tool';
    const reply = { role: 'assistant' as const, content: fillerReply };
    return [...(needsReply ? [reply] : []), encodeChatMessage(message, model, compat)];
  });

export const encodeChatRequest = (
  { model, system, messages, tools, maxTokens, wordsOnly = false }: ModelRequest,
  compat: Compat,
  host: string,
): ChatCompletionCreateParamsStreaming => ({
  model,
  stream: true,
  ...(compat.streamOptions ? { stream_options: { include_usage: true } } : {}),
  messages: [{ role: 'system', content: system }, ...encodeChatMessages(messages, model, compat)],
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

const decodeChatUsage = (usage: CompletionUsage): ModelUsage => ({
  inputTokens: validCount(usage.prompt_tokens),
  outputTokens: validCount(usage.completion_tokens),
  cachedTokens: validCount(usage.prompt_tokens_details?.cached_tokens),
});

type CallPart = ChatCompletionChunk.Choice.Delta.ToolCall;

/** Some servers send the arguments as an object instead of JSON text. */
const argumentsIn = (part: CallPart): string => {
  const given: unknown = part.function?.arguments ?? '';
  return typeof given === 'string' ? given : JSON.stringify(given);
};

/**
 * The index of the call that a piece belongs to. Some servers leave the index out, others give
 * several calls the same one. A new id alone begins no new call: some servers make one up for every
 * piece.
 */
const callIndexFor = (
  part: CallPart,
  calls: ReadonlyMap<number, ToolCall>,
  places: Map<number, number>,
): number => {
  const next = Math.max(-1, ...calls.keys()) + 1;
  const begins = Boolean(part.id) && Boolean(part.function?.name);
  const index = (part.index as number | undefined) ?? (begins ? next : Math.max(0, next - 1));
  const place = places.get(index) ?? index;
  const known = calls.get(place);
  const isOther = begins && known !== undefined && known.id !== '' && known.id !== part.id;
  places.set(index, isOther ? next : place);
  return isOther ? next : place;
};

const extended = (call: ToolCall | undefined, part: CallPart): ToolCall => ({
  id: call?.id || (part.id ?? ''),
  tool: (call?.tool ?? '') + (part.function?.name ?? ''),
  arguments: (call?.arguments ?? '') + argumentsIn(part),
});

/** With `textToolCalls`, an answer without calls is searched for calls in its text. */
export const createChatAssembly = ({
  textToolCalls,
}: Pick<Compat, 'textToolCalls'>): Assembly<ChatCompletionChunk> => {
  const calls = new Map<number, ToolCall>();
  const places = new Map<number, number>();
  let text = '';
  let chunks = 0;
  let finishReason: string | null = null;
  let usage: ModelUsage | null = null;
  let thought: ReturnType<typeof reasoningOf> = null;
  const printed = (): TextCalls | null =>
    textToolCalls && calls.size === 0 ? textCallsIn(text) : null;

  return {
    add: (chunk) => {
      chunks += 1;
      if (chunk.usage) usage = decodeChatUsage(chunk.usage);
      const choice = chunk.choices?.[0];
      if (choice === undefined) return { text: '', progress: false };
      const inside = (choice as { readonly usage?: CompletionUsage | null }).usage;
      if (inside && usage === null) usage = decodeChatUsage(inside);
      // Some providers send an empty reason with every piece.
      if (typeof choice.finish_reason === 'string')
        finishReason = choice.finish_reason || finishReason;
      const delta = choice.delta ?? {};
      const added = typeof delta.content === 'string' ? delta.content : '';
      text += added;
      for (const part of delta.tool_calls ?? []) {
        const place = callIndexFor(part, calls, places);
        calls.set(place, extended(calls.get(place), part));
      }
      const more = reasoningOf(delta);
      if (more !== null)
        thought = { field: thought?.field ?? more.field, text: (thought?.text ?? '') + more.text };
      const progress = added !== '' || (delta.tool_calls?.length ?? 0) > 0 || more !== null;
      return { text: added, progress };
    },
    chunks: () => chunks,
    finishReason: () => finishReason,
    text: () => printed()?.text ?? text,
    calls: () => callsInOrder(new Map(printed()?.calls.entries() ?? calls)),
    usage: () => usage,
    thinking: () => (thought === null ? null : { protocol: 'chat', ...thought }),
  };
};
