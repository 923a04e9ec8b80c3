import { expect, onTestFinished, test, vi } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai.ts';
import { ask } from '../../contracts/model.ts';

test.each([
  ['auto', 'https://api.openai.com/v1', '/responses'],
  ['auto', 'http://127.0.0.1:11434/v1', '/chat/completions'],
  ['auto', 'https://api.openai.com.example.org/v1', '/chat/completions'],
  ['chat', 'https://api.openai.com/v1', '/chat/completions'],
  ['responses', 'http://127.0.0.1:11434/v1', '/responses'],
] as const)('protocol %s at %s asks at %s', async (protocol, baseURL, path) => {
  const fetched = vi.fn<typeof fetch>(async () => new Response(null, { status: 500 }));
  vi.stubGlobal('fetch', fetched);
  onTestFinished(() => {
    vi.unstubAllGlobals();
  });

  await ask(createOpenAiModel({ protocol, apiKey: 'sk-test-key-0123456789', baseURL }));

  expect(fetched.mock.calls.map(([url]) => url)).toEqual([`${baseURL}${path}`]);
});
