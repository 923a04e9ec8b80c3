import { APIError } from 'openai';
import type {
  ResponseCompletedEvent,
  ResponseCreateParamsStreaming,
  ResponseFunctionToolCall,
  ResponseIncompleteEvent,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
  ResponseStreamEvent,
  ResponseUsage,
} from 'openai/resources/responses/responses';
import { textOrEmpty } from '../../../machines/json.ts';
import { dataUrlOf, imagesOf } from '../images.ts';
import type { Model, ModelMessage, ModelRequest, ModelUsage, ToolCall } from '../port.ts';
import { type Thoughts, thoughtsFor } from '../reasoning.ts';
import { type Assembly, cacheWritesIn, callsInOrder, validCount } from './openai-assembly.ts';
import { createOpenAiCall, keyHeader, type ProviderOptions } from './openai-call.ts';

/** A plain text where there is no image, which every server takes. */
const withImages = (message: ModelMessage, images: ModelRequest['images']) => {
  const { text } = message;
  const shown = imagesOf(message, images).map((image) => ({
    type: 'input_image' as const,
    detail: 'auto' as const,
    image_url: dataUrlOf(image),
  }));
  return shown.length === 0 ? text : [...shown, { type: 'input_text' as const, text }];
};

/**
 * Calls carry no item id of the provider: with one it demands the reasoning that belongs to it.
 * Texts must have an id, so they get their index in the conversation.
 */
const encodeResponseItems = (
  message: ModelMessage,
  index: number,
  { model, images }: Pick<ModelRequest, 'model' | 'images'>,
): readonly ResponseInputItem[] => {
  if (message.role === 'user')
    return [{ type: 'message', role: 'user', content: withImages(message, images) }];
  if (message.role === 'tool') {
    const output = withImages(message, images);
    return [{ type: 'function_call_output', call_id: message.callId, output }];
  }
  const text: ResponseInputItem = {
    type: 'message',
    role: 'assistant',
    id: `msg_${index}`,
    status: 'completed',
    content: [{ type: 'output_text', text: message.text, annotations: [] }],
  };
  const calls = message.calls.map(({ id, tool, arguments: given }) => ({
    type: 'function_call' as const,
    call_id: id,
    name: tool,
    arguments: given,
  }));
  const parts = message.text === '' ? calls : [text, ...calls];
  const thinking = thoughtsFor(message.reasoning, 'responses', model)?.items ?? [];
  // Reasoning comes before the parts that it led to.
  return [...parts, null].flatMap((part, place) => [
    ...thinking
      .filter(({ after }) => after === place)
      .map(({ item }) => item as unknown as ResponseReasoningItem),
    ...(part === null ? [] : [part]),
  ]);
};

/** Models of OpenAI that give their reasoning encrypted; some others refuse a request for it. */
const sealsThoughts = /(^|\/)(o\d|gpt-([5-9]|\d\d)|codex)(?!.*chat)/;

export const encodeResponseRequest = ({
  model,
  system,
  messages,
  images,
  tools,
  maxTokens,
  wordsOnly = false,
}: ModelRequest): ResponseCreateParamsStreaming => ({
  model,
  stream: true,
  store: false,
  instructions: system,
  ...(sealsThoughts.test(model) ? { include: ['reasoning.encrypted_content' as const] } : {}),
  input: messages.flatMap((message, index) =>
    encodeResponseItems(message, index, { model, images }),
  ),
  ...(tools.length === 0
    ? {}
    : {
        tools: tools.map(({ name, description, parameters }) => ({
          type: 'function' as const,
          name,
          description,
          parameters: { ...parameters },
          strict: false,
        })),
        ...(wordsOnly ? { tool_choice: 'none' as const } : {}),
      }),
  max_output_tokens: maxTokens,
});

const decodeResponseUsage = (usage: ResponseUsage): ModelUsage => ({
  inputTokens: validCount(usage.input_tokens),
  outputTokens: validCount(usage.output_tokens),
  cachedTokens: validCount(usage.input_tokens_details?.cached_tokens),
  cacheWriteTokens: cacheWritesIn(usage.input_tokens_details),
});

/**
 * Some gateways call a truncated answer completed, so the reason for an incomplete one comes first.
 */
const finishReasonOf = ({
  type,
  response,
}: ResponseCompletedEvent | ResponseIncompleteEvent): string => {
  const reason = response.incomplete_details?.reason;
  if (reason === 'max_output_tokens') return 'length';
  return reason ?? (type === 'response.completed' ? 'stop' : 'incomplete');
};

const responseText = ({ content }: ResponseOutputMessage): string =>
  (content ?? [])
    .map((part) => textOrEmpty(part.type === 'refusal' ? part.refusal : part.text))
    .join('');

/** A whole call replaces its pieces. */
const createCalls = () => {
  const calls = new Map<number, ToolCall>();
  const at = (index: number): ToolCall => calls.get(index) ?? { id: '', tool: '', arguments: '' };
  return {
    extend: (index: number, delta: unknown): void => {
      const call = at(index);
      calls.set(index, { ...call, arguments: call.arguments + textOrEmpty(delta) });
    },
    settle: (index: number, given: Partial<ResponseFunctionToolCall>): void => {
      const call = at(index);
      calls.set(index, {
        id: given.call_id || call.id,
        tool: given.name || call.tool,
        arguments: given.arguments || call.arguments,
      });
    },
    list: (): readonly ToolCall[] => callsInOrder(calls),
    /** Counts the calls before places that only rise. */
    counter: (): ((place: number) => number) => {
      const places = [...calls.keys()].sort((one, other) => one - other);
      let count = 0;
      return (place) => {
        while ((places[count] ?? Number.POSITIVE_INFINITY) < place) count += 1;
        return count;
      };
    },
  };
};

/** Text that came in pieces is not added again as a whole. */
const createText = () => {
  const spoken = new Set<number>();
  let first = Number.POSITIVE_INFINITY;
  let text = '';
  const add = (index: number, delta: unknown): string => {
    const added = textOrEmpty(delta);
    if (added !== '') {
      spoken.add(index);
      first = Math.min(first, index);
    }
    text += added;
    return added;
  };
  return {
    add,
    settle: (index: number, whole: string): string => (spoken.has(index) ? '' : add(index, whole)),
    all: (): string => text,
    isBefore: (place: number): boolean => first < place,
  };
};

/** Collects reasoning to send back; an item without content is only an id at the provider. */
const createThoughts = () => {
  const items = new Map<number, Readonly<Record<string, unknown>>>();
  return {
    keep: (
      index: number,
      { type, id, summary, content, encrypted_content }: ResponseReasoningItem,
    ): void => {
      const isWhole = typeof encrypted_content === 'string' || (content?.length ?? 0) > 0;
      const sealed = typeof encrypted_content === 'string' ? { encrypted_content } : {};
      const open = content == null ? {} : { content };
      if (isWhole) items.set(index, { type, id, summary: summary ?? [], ...open, ...sealed });
    },
    /** Asks for places that only rise. */
    list: (partsBefore: (place: number) => number): Thoughts | null =>
      items.size === 0
        ? null
        : {
            protocol: 'responses',
            items: [...items]
              .sort(([one], [other]) => one - other)
              .map(([index, item]) => ({ after: partsBefore(index), item })),
          },
  };
};

/** A refusal counts as text. */
export const createResponseAssembly = (): Assembly<ResponseStreamEvent> => {
  const calls = createCalls();
  const text = createText();
  const thoughts = createThoughts();
  let chunks = 0;
  let finishReason: string | null = null;
  let usage: ModelUsage | null = null;

  const progress = { text: '', progress: true };
  const said = (added: string) => ({ text: added, progress: added !== '' });
  const settle = (index: number, item: ResponseOutputItem) => {
    if (item.type === 'message') return said(text.settle(index, responseText(item)));
    if (item.type === 'function_call') calls.settle(index, item);
    if (item.type === 'reasoning') thoughts.keep(index, item);
    return progress;
  };
  const finish = (event: ResponseCompletedEvent | ResponseIncompleteEvent) => {
    finishReason = finishReasonOf(event);
    if (event.response.usage) usage = decodeResponseUsage(event.response.usage);
    return progress;
  };
  const take = (event: ResponseStreamEvent) => {
    switch (event.type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return said(text.add(event.output_index, event.delta));
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        return { text: '', progress: event.delta !== '' };
      case 'response.function_call_arguments.delta':
        calls.extend(event.output_index, event.delta);
        return progress;
      case 'response.function_call_arguments.done':
        calls.settle(event.output_index, { arguments: event.arguments });
        return progress;
      case 'response.output_item.added':
      case 'response.output_item.done':
        return settle(event.output_index, event.item);
      case 'response.completed':
      case 'response.incomplete':
        return finish(event);
      case 'response.failed':
        throw new APIError(undefined, event.response.error ?? undefined, undefined, undefined);
      case 'error':
        throw new APIError(undefined, event, undefined, undefined);
      default:
        return said('');
    }
  };

  return {
    add: (event) => {
      chunks += 1;
      return take(event);
    },
    end: () => {},
    chunks: () => chunks,
    finishReason: () => finishReason,
    text: text.all,
    calls: calls.list,
    usage: () => usage,
    thinking: () => {
      const callsBefore = calls.counter();
      return thoughts.list((place) => callsBefore(place) + (text.isBefore(place) ? 1 : 0));
    },
  };
};

/** A response begins at once and may then send no byte for minutes while the model thinks. */
const thinkingMs = 300_000;

/** The Responses API without state: the provider stores nothing. */
export const createOpenAiResponsesModel = (options: ProviderOptions): Model =>
  createOpenAiCall<ResponseStreamEvent>(
    { ...options, timeouts: { idleMs: thinkingMs, ...options.timeouts } },
    {
      open: (client, request, signal) =>
        client.responses
          .create(encodeResponseRequest(request), { signal, headers: keyHeader(request) })
          .asResponse(),
      createAssembly: createResponseAssembly,
    },
  );
