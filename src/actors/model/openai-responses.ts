import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { createOpenAiCall, keyHeader, type OpenAiOptions } from './openai-call.ts';
import type { Model } from './port.ts';
import { createResponseAssembly, encodeResponseRequest } from './responses-codec.ts';

/** A response begins at once and may then send no byte for minutes while the model thinks. */
const thinkingMs = 300_000;

/** The Responses API without state: the provider stores nothing. */
export const createOpenAiResponsesModel = (options: OpenAiOptions): Model =>
  createOpenAiCall<ResponseStreamEvent>(
    { ...options, timeouts: { idleMs: thinkingMs, ...options.timeouts } },
    {
      open: (client, request, signal) =>
        client.responses.create(encodeResponseRequest(request), {
          signal,
          headers: keyHeader(request),
        }),
      createAssembly: createResponseAssembly,
    },
  );
