import { hostOf, type OpenAiOptions } from './openai-call.ts';
import { createOpenAiChatModel } from './openai-chat.ts';
import { createOpenAiResponsesModel } from './openai-responses.ts';
import type { Model } from './port.ts';

/** `auto` is `responses` at api.openai.com and `chat`, which every other server speaks, elsewhere. */
export type OpenAiProtocol = 'auto' | 'responses' | 'chat';

/** The provider behind a base URL, by the protocol that it is asked in. */
export const createOpenAiModel = ({
  protocol,
  ...options
}: OpenAiOptions & { readonly protocol: OpenAiProtocol }): Model => {
  const auto = hostOf(options.baseURL) === 'api.openai.com' ? 'responses' : 'chat';
  const create = { responses: createOpenAiResponsesModel, chat: createOpenAiChatModel };
  return create[protocol === 'auto' ? auto : protocol](options);
};
