import { expect, onTestFinished, test, vi } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { ask } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

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

const nowhere: Answer = { kind: 'status', status: 404, body: '404 page not found' };
/** An error of a gateway with its own codes. */
const nowhereByCode: Answer = {
  kind: 'status',
  status: 404,
  body: { error: { message: 'Not Found', code: 'not_found' } },
};
const unknownModel: Answer = {
  kind: 'status',
  status: 404,
  body: {
    error: { message: 'no such model', type: 'invalid_request_error', code: 'model_not_found' },
  },
};
const well: Answer = { kind: 'answer', text: 'well' };

/** A server by its answers to chat completions and responses, and a model that chooses. */
const openAuto = async (chat: Answer, responses: Answer) => {
  const server = await startModelServer(({ path }) =>
    path.endsWith('/responses') ? responses : chat,
  );
  const model = createOpenAiModel({
    protocol: 'auto',
    apiKey: 'sk-test-key-0123456789',
    baseURL: server.baseURL,
  });
  return { model, requests: server.requests, asked: () => server.requests.map(({ path }) => path) };
};

test.each([404, 405, 501])(
  'auto switches to the other protocol for good when the server answers %s',
  async (status) => {
    const { model, asked } = await openAuto({ ...nowhere, status }, well);

    const first = await ask(model);
    const second = await ask(model);

    for (const events of [first, second])
      expect(events.at(-1)).toMatchObject({ type: 'answered', text: 'well' });
    expect(asked()).toEqual(['/v1/chat/completions', '/v1/responses', '/v1/responses']);
  },
);

test.each<[string, Answer, Answer, RegExp, number]>([
  ['a model that is not known', unknownModel, well, /no such model/, 1],
  [
    'a refused key',
    { kind: 'status', status: 401, body: { error: { message: 'no' } } },
    well,
    /refused the key/,
    1,
  ],
  ['a server without either', nowhere, nowhereByCode, /404/, 2],
  [
    'an error of the other one',
    nowhere,
    { kind: 'status', status: 500, body: { error: { message: 'ill' } } },
    /500/,
    2,
  ],
])('auto says of %s what is the matter', async (_, chat, responses, says, calls) => {
  const { model, asked } = await openAuto(chat, responses);

  expect((await ask(model)).at(-1)).toMatchObject({
    type: 'failed',
    failure: { message: expect.stringMatching(says) },
  });
  expect(asked()).toHaveLength(calls);
});

test('a configured protocol is the only one tried', async () => {
  const server = await startModelServer(() => nowhere);
  const model = createOpenAiModel({
    protocol: 'chat',
    apiKey: 'sk-test-key-0123456789',
    baseURL: server.baseURL,
  });

  await ask(model);

  expect(server.requests).toHaveLength(1);
});
