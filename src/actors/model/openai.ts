import type { Failure } from '../../machines/task.ts';
import { hostOf } from './openai-call.ts';
import { createOpenAiChatModel, type OpenAiChatOptions } from './openai-chat.ts';
import { isNoEndpoint } from './openai-faults.ts';
import { createOpenAiResponsesModel } from './openai-responses.ts';
import type { Model, ModelRequest } from './port.ts';

/**
 * `auto` is `responses` at api.openai.com and `chat`, which every other server speaks, elsewhere; and the other one where
 * that is not there.
 */
export type OpenAiProtocol = 'auto' | 'responses' | 'chat';

/** Another request than the first, which a gateway must not answer with what it answered to that. */
const forSecondProtocol = (request: ModelRequest): ModelRequest => ({
  ...request,
  idempotencyKey: `${request.idempotencyKey}/other`,
});

/** The second is asked where the first is not there; who answers first is asked alone from then on. */
const firstOrSecond = (first: Model, second: Model): Model => {
  let settled: Model | null = null;
  return {
    ...first,
    async *ask(request, signal) {
      let missing: Failure | null = null;
      if (settled !== second) {
        for await (const event of first.ask(request, signal)) {
          if (settled === null && event.type === 'failed' && isNoEndpoint(event.failure)) missing = event.failure;
          else yield event;
          if (event.type === 'answered') settled = first;
        }
        if (missing === null) return;
      }
      for await (const event of second.ask(forSecondProtocol(request), signal)) {
        if (event.type === 'answered') settled = second;
        const isMissingToo = missing !== null && event.type === 'failed' && isNoEndpoint(event.failure);
        yield isMissingToo && missing !== null ? { type: 'failed', failure: missing } : event;
      }
    },
  };
};

/** The provider behind a base URL, by the protocol that it is asked in. */
export const createOpenAiModel = ({
  protocol,
  ...options
}: OpenAiChatOptions & { readonly protocol: OpenAiProtocol }): Model => {
  if (protocol === 'chat') return createOpenAiChatModel(options);
  if (protocol === 'responses') return createOpenAiResponsesModel(options);
  const [chat, responses] = [createOpenAiChatModel(options), createOpenAiResponsesModel(options)];
  return hostOf(options.baseURL) === 'api.openai.com' ? firstOrSecond(responses, chat) : firstOrSecond(chat, responses);
};
