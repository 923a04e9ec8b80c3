import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { createAssembly, encodeRequest } from './chat-codec.ts';
import { type Compat, usualCompat } from './compat.ts';
import { createOpenAiCall, hostOf, keyHeader, type OpenAiOptions } from './openai-call.ts';
import type { Model } from './port.ts';

export interface OpenAiChatOptions extends OpenAiOptions {
  readonly compat?: Compat;
}

/** Chat Completions over the openai package. */
export const createOpenAiChatModel = ({ compat = usualCompat, ...options }: OpenAiChatOptions): Model => {
  const host = hostOf(options.baseURL);
  return createOpenAiCall<ChatCompletionChunk>(options, {
    open: (client, request, signal) =>
      client.chat.completions.create(encodeRequest(request, compat, host), { signal, headers: keyHeader(request) }),
    createAssembly: () => createAssembly(compat),
  });
};
