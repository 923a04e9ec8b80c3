import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { createOpenAiCall, hostOf, keyHeader, type OpenAiOptions } from './openai-call.ts';
import { createAssembly, encodeRequest, type MaxTokensField } from './openai-codec.ts';
import type { Model } from './port.ts';

export interface OpenAiChatOptions extends OpenAiOptions {
  readonly maxTokensField?: MaxTokensField;
}

/** Chat Completions over the openai package. */
export const createOpenAiChatModel = (options: OpenAiChatOptions): Model => {
  const host = hostOf(options.baseURL);
  const field = options.maxTokensField ?? (host === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens');
  return createOpenAiCall<ChatCompletionChunk>(options, {
    open: (client, request, signal) =>
      client.chat.completions.create(encodeRequest(request, field), { signal, headers: keyHeader(request) }),
    createAssembly,
  });
};
