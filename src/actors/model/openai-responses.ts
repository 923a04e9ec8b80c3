import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { createOpenAiCall, keyHeader, type OpenAiOptions } from './openai-call.ts';
import type { Model } from './port.ts';
import { createResponseAssembly, encodeResponseRequest } from './responses-codec.ts';

/** Unlike a chat completion, a response begins at once and then may think for minutes without a byte. */
const thinkingMs = 300_000;

/** The Responses API over the openai package, stateless: nothing is stored at the provider. */
export const createOpenAiResponsesModel = (options: OpenAiOptions): Model =>
  createOpenAiCall<ResponseStreamEvent>(
    { ...options, timeouts: { idleMs: thinkingMs, ...options.timeouts } },
    {
      open: (client, request, signal) =>
        client.responses.create(encodeResponseRequest(request), { signal, headers: keyHeader(request) }),
      createAssembly: createResponseAssembly,
    },
  );
