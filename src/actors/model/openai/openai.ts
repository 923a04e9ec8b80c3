import type { Failure } from '../../../machines/task.ts';
import { hostOf } from '../../network/addresses.ts';
import type { Model, ModelRequest } from '../port.ts';
import { createOpenAiChatModel, type OpenAiChatOptions } from './openai-chat.ts';
import { isNoEndpoint } from './openai-faults.ts';
import { createOpenAiResponsesModel } from './openai-responses.ts';

/**
 * `auto` asks api.openai.com by `responses` and all other servers by `chat`, and falls back to the
 * other protocol when the endpoint is missing.
 */
export type OpenAiProtocol = 'auto' | 'responses' | 'chat';

/** A key of its own keeps a gateway from repeating its answer to the first request. */
const forSecondProtocol = (request: ModelRequest): ModelRequest => ({
  ...request,
  idempotencyKey: `${request.idempotencyKey}/other`,
});

/**
 * Asks the second when the first has no endpoint; the one that answers is the only one from then
 * on.
 */
const firstOrSecond = (first: Model, second: Model): Model => {
  let settled: Model | null = null;
  return {
    ...first,
    async *ask(request, signal) {
      let missing: Failure | null = null;
      if (settled !== second) {
        for await (const event of first.ask(request, signal)) {
          if (settled === null && event.type === 'failed' && isNoEndpoint(event.failure))
            missing = event.failure;
          else yield event;
          if (event.type === 'answered') settled = first;
        }
        if (missing === null) return;
      }
      for await (const event of second.ask(forSecondProtocol(request), signal)) {
        if (event.type === 'answered') settled = second;
        const isMissingToo =
          missing !== null && event.type === 'failed' && isNoEndpoint(event.failure);
        yield isMissingToo && missing !== null ? { type: 'failed', failure: missing } : event;
      }
    },
  };
};

export const createOpenAiModel = ({
  protocol,
  ...options
}: OpenAiChatOptions & { readonly protocol: OpenAiProtocol }): Model => {
  if (protocol === 'chat') return createOpenAiChatModel(options);
  if (protocol === 'responses') return createOpenAiResponsesModel(options);
  const [chat, responses] = [createOpenAiChatModel(options), createOpenAiResponsesModel(options)];
  return hostOf(options.baseURL) === 'api.openai.com'
    ? firstOrSecond(responses, chat)
    : firstOrSecond(chat, responses);
};
