import type { Failure } from '../../machines/task.ts';
import { hostOf } from './openai-call.ts';
import { createOpenAiChatModel, type OpenAiChatOptions } from './openai-chat.ts';
import { createOpenAiResponsesModel } from './openai-responses.ts';
import type { Model } from './port.ts';

/**
 * `auto` is `responses` at api.openai.com and `chat`, which every other server speaks, elsewhere; and the other one where
 * that is not there.
 */
export type OpenAiProtocol = 'auto' | 'responses' | 'chat';

/** That the server does not know the address; of a model that it does not know, most say so by a code. */
const isNoEndpoint = ({ facts }: Failure): boolean =>
  [404, 405, 501].some((status) => status === facts['status']) && facts['provider_code'] === undefined;

/** The second is asked where the first is not there, and from then on alone. */
const eitherOf = (first: Model, second: Model): Model => {
  let settled: Model | null = null;
  return {
    ...first,
    async *ask(request, signal) {
      let missing: Failure | null = null;
      for await (const event of (settled ?? first).ask(request, signal)) {
        if (settled === null && event.type === 'failed' && isNoEndpoint(event.failure)) missing = event.failure;
        else yield event;
      }
      if (missing === null) return;
      for await (const event of second.ask(request, signal)) {
        const isThere = event.type !== 'failed' || !isNoEndpoint(event.failure);
        if (isThere) settled = second;
        yield isThere ? event : { type: 'failed', failure: missing };
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
  return hostOf(options.baseURL) === 'api.openai.com' ? eitherOf(responses, chat) : eitherOf(chat, responses);
};
