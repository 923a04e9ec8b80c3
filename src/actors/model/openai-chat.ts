import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { createChatAssembly, encodeChatRequest } from './chat-codec.ts';
import { type Compat, defaultCompat } from './compat.ts';
import { createOpenAiCall, hostOf, keyHeader, type OpenAiOptions } from './openai-call.ts';
import type { Model } from './port.ts';

export interface OpenAiChatOptions extends OpenAiOptions {
  readonly compat?: Compat;
}

export const createOpenAiChatModel = ({
  compat = defaultCompat,
  ...options
}: OpenAiChatOptions): Model => {
  const host = hostOf(options.baseURL);
  return createOpenAiCall<ChatCompletionChunk>(options, {
    open: (client, request, signal) =>
      client.chat.completions.create(encodeChatRequest(request, compat, host), {
        signal,
        headers: keyHeader(request),
      }),
    createAssembly: () => createChatAssembly(compat),
  });
};
