import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { type Answer, type SeenRequest, startModelServer } from '../support/model-server.ts';

/**
 * `agent doctor --model` against a server that answers like real ones; the real binary, over real
 * sockets.
 */

const key = 'sk-canary-0123456789abcdef';
const model = 'qwen3-coder';
const note: Answer = {
  kind: 'answer',
  calls: [{ id: 'c', name: 'note', arguments: '{"text":"ready"}' }],
};
const json = (status: number, body: object): Answer => ({ kind: 'status', status, body });
const serves = (entry: object): Answer =>
  json(200, { object: 'list', data: [{ id: model, object: 'model', ...entry }] });
const notFound = json(404, { detail: 'Not Found' });

interface Paths {
  readonly models?: Answer;
  readonly chat?: Answer | Asked;
  readonly responses?: Answer;
  readonly props?: Answer;
}

const answerOf = (paths: Paths, request: SeenRequest): Answer => {
  const { path } = request;
  const [, name] = Object.entries({
    '/models': paths.models,
    '/chat/completions': answered(paths.chat, request),
    '/responses': paths.responses,
    '/props': paths.props,
  }).find(([end]) => path.endsWith(end)) ?? ['', undefined];
  return name ?? notFound;
};

type Asked = (body: Readonly<Record<string, unknown>>) => Answer;
const answered = (answer: Answer | Asked | undefined, { body }: SeenRequest): Answer | undefined =>
  typeof answer === 'function' ? answer(body as Readonly<Record<string, unknown>>) : answer;

const doctor = async (paths: Paths, api: object = {}, ...flags: readonly string[]) => {
  const provider = await startModelServer((request: SeenRequest) => answerOf(paths, request));
  const project = openProject({
    api: { base_url: provider.baseURL, provider_model: model, ...api },
  });
  const ended = await project.agentWith({ OPENAI_API_KEY: key }, 'doctor', '--model', ...flags);
  expect(ended.out + ended.err).not.toContain('sk-canary');
  return { ...ended, requests: provider.requests };
};

test('a good server: both protocols are tried, and doctor reports the one in use, the window and usage', async () => {
  const { code, out, requests } = await doctor({
    models: serves({ owned_by: 'vllm', max_model_len: 32_768 }),
    chat: note,
    responses: note,
  });

  expect(out).toMatch(/^qwen3-coder at http:\/\/127\.0\.0\.1/);
  expect(out).toMatch(
    /ok +chat +reachable, authorised, knows the model, streams, calls tools, reports usage/,
  );
  expect(out).toMatch(/ok +responses/);
  expect(out).toMatch(/ok +protocol +chat, by api\.protocol auto/);
  expect(out).toMatch(
    /note +window +the server says 32768 tokens \(assumed: nothing\); set api\.context_window/,
  );
  expect(code).toBe(0);
  const asked = requests.find(({ path }) => path.endsWith('/chat/completions'));
  expect(asked?.body).toMatchObject({
    model,
    stream: true,
    tools: [{ function: { name: 'note' } }],
  });
  expect(requests).toHaveLength(4);
});

test('as JSON for programs', async () => {
  const { code, out } = await doctor(
    { models: serves({}), chat: note, responses: note },
    { context_window: 8_000 },
    '--json',
  );

  expect(JSON.parse(out)).toMatchObject({
    model,
    use: 'chat',
    context_window: null,
    probes: [
      {
        protocol: 'chat',
        reachable: true,
        authorised: true,
        speaks: true,
        knows_model: true,
        streams: true,
        calls_tools: true,
        reports_usage: true,
        error: null,
      },
      { protocol: 'responses' },
    ],
    checks: expect.arrayContaining([
      { check: 'window', status: 'ok', detail: '8000 tokens, by api.context_window' },
    ]),
  });
  expect(code).toBe(0);
});

test('a wrong key is reported once, and no other protocol is tried', async () => {
  const refused = json(401, { error: { message: `Incorrect API key provided: ${key}` } });
  const { code, out, requests } = await doctor({
    models: refused,
    chat: refused,
    responses: refused,
  });

  expect(out).toMatch(
    /problem +chat +reachable, but not authorised: the provider refused the key \(HTTP 401\)/,
  );
  expect(out).toMatch(/problem +protocol +none works/);
  expect(code).toBe(1);
  expect(requests.filter(({ path }) => !path.endsWith('/models'))).toHaveLength(1);
});

test.each<[string, Answer | undefined, Answer]>([
  [
    'by its code',
    undefined,
    json(404, { error: { message: 'no such model', code: 'model_not_found' } }),
  ],
  [
    'by the list',
    json(200, { data: [{ id: 'llama3' }, { id: 'phi4' }] }),
    json(404, { error: { message: 'not found' } }),
  ],
])('a model that the server does not know is said, %s', async (_, models, refused) => {
  const { code, out } = await doctor({
    ...(models === undefined ? {} : { models }),
    chat: refused,
  });

  expect(out).toMatch(/problem +chat +reachable and authorised, but there is no model qwen3-coder/);
  if (models !== undefined) expect(out).toContain('it serves llama3, phi4');
  expect(code).toBe(1);
});

test.each<[string, string, Answer, RegExp]>([
  [
    'talks instead',
    'vllm',
    { kind: 'answer', text: 'note("ready")' },
    /calls no tools; start it with --enable-auto-tool-choice/,
  ],
  [
    'refuses tools',
    'llamacpp',
    json(500, { error: { message: 'tools param requires --jinja flag', code: 500 } }),
    /no answer: .*tools param requires.*; start it with --jinja/,
  ],
  [
    'writes nonsense',
    'library',
    { kind: 'answer', calls: [{ id: 'c', name: 'note', arguments: '{"text' }] },
    /calls no tools; use a model that can call tools/,
  ],
])(
  'a model that %s cannot be worked with, and the hint fits its server',
  async (_, owned_by, chat, words) => {
    const { code, out } = await doctor({ models: serves({ owned_by }), chat });

    expect(out).toMatch(new RegExp(`problem +chat +.*${words.source}`));
    expect(out).toMatch(/note +responses +the server does not speak it/);
    expect(out).toMatch(/problem +protocol +none works: agents cannot use this model/);
    expect(code).toBe(1);
  },
);

test("without usage the model works, with a note about estimates and Ollama's silent cut", async () => {
  const { code, out } = await doctor({
    models: serves({ owned_by: 'library' }),
    chat: { ...note, usage: null } as Answer,
  });

  expect(out).toMatch(
    /note +chat +reachable.*calls tools, reports no usage, so tokens and cost are estimates/,
  );
  expect(out).toMatch(/note +window +unknown.*Ollama silently cuts longer conversations/);
  expect(code).toBe(0);
});

test('a server with chat alone is fine by default, and a problem when responses is configured', async () => {
  const paths = { models: serves({}), chat: note };

  const [auto, named] = [await doctor(paths), await doctor(paths, { protocol: 'responses' })];

  expect(auto.code).toBe(0);
  expect(auto.out).toMatch(/note +responses +the server does not speak it/);
  expect(named.code).toBe(1);
  expect(named.out).toMatch(/problem +responses +the server does not speak it\n.*ok +chat/);
  expect(named.out).toMatch(/problem +protocol +set api\.protocol to chat/);
});

test('a configured protocol that works is the only one tried', async () => {
  const { code, requests } = await doctor(
    { models: serves({}), chat: note, responses: note },
    { protocol: 'chat' },
  );

  expect(code).toBe(0);
  expect(requests.map(({ path }) => path)).toEqual([
    '/v1/models',
    '/v1/chat/completions',
    '/v1/chat/completions',
  ]);
});

test("a configured window larger than the server's is a problem", async () => {
  const props = json(200, { default_generation_settings: { n_ctx: 4_096 } });
  const { code, out } = await doctor(
    { models: serves({ owned_by: 'llamacpp' }), chat: note, props },
    { context_window: 8_000 },
  );

  expect(out).toMatch(/problem +window +api\.context_window is 8000, but the server says 4096/);
  expect(code).toBe(1);
});

test('an answer that does not stream, and an unreachable server, are reported as such', async () => {
  const project = openProject({
    api: { base_url: 'http://127.0.0.1:9/v1', provider_model: model },
  });

  const [page, away] = [
    await doctor({ chat: { kind: 'html' } }),
    await project.agentWith({ OPENAI_API_KEY: key }, 'doctor', '--model'),
  ];

  expect(page.out).toMatch(/problem +chat +the answer does not stream: .*text\/html/);
  expect(away.out).toMatch(/problem +chat +not reachable: the provider at .* cannot be reached/);
  expect([page.code, away.code]).toEqual([1, 1]);
});

test('a provider of its own is asked with its headers, and api.compat is not said to be about it', async () => {
  const gateway = await startModelServer((request) => {
    if (request.headers['x-team-key'] !== 'team-secret-0123')
      return json(401, { detail: 'no team' });
    const needsField = (body: object): Answer =>
      'max_completion_tokens' in body ? note : json(400, { error: { message: 'max_tokens' } });
    return answerOf({ models: serves({}), chat: needsField }, request);
  });
  const headers = { 'x-team-key': 'team-secret-0123' };
  const project = openProject({
    api: { provider_model: `work/${model}`, protocol: 'responses' },
    providers: { work: { base_url: gateway.baseURL, headers } },
  });

  const { code, out } = await project.agent('doctor', '--model');

  expect(out).toMatch(/ok +protocol +chat/);
  expect(out).toMatch(
    /problem +compat .*about api\.base_url only: set that instead of providers\.work/,
  );
  expect(out).not.toContain('team-secret');
  expect(code).toBe(1);
});

test('without a model to test, doctor says why', async () => {
  const [noKey, scripted] = [
    await openProject({ api: { provider_model: model } }).agent('doctor', '--model', '--json'),
    await openProject().agentWith({ OPENAI_API_KEY: key }, 'doctor', '--model'),
  ];

  expect([noKey.code, JSON.parse(noKey.out)]).toEqual([
    1,
    {
      problem: expect.stringMatching(/^OPENAI_API_KEY is not set; keep the key of your provider/),
      probes: [],
    },
  ]);
  expect([scripted.code, scripted.err]).toEqual([
    1,
    expect.stringContaining('api.backend is scripted'),
  ]);
});

const misunderstood = (what: string): Answer =>
  json(400, { error: { message: `unsupported: ${what}` } });
const messagesIn = (body: Readonly<Record<string, unknown>>) =>
  body['messages'] as readonly Record<string, unknown>[];

test.each<[string, Asked, RegExp]>([
  [
    'that refuses stream_options',
    (body) => ('stream_options' in body ? misunderstood('stream_options') : note),
    /problem +compat +set api\.compat\.stream_options to false$/m,
  ],
  [
    'that wants max_completion_tokens',
    (body) => ('max_tokens' in body ? misunderstood('max_tokens') : note),
    /problem +compat +set api\.compat\.max_tokens_field to max_completion_tokens$/m,
  ],
  [
    'that wants the names of tools',
    (body) =>
      messagesIn(body).some(({ role, name }) => role === 'tool' && !name)
        ? misunderstood('tool')
        : note,
    /problem +compat +set api\.compat\.tool_result_name to true$/m,
  ],
  [
    'that wants both, and an answer to results',
    (body) => {
      const [before, last] = messagesIn(body).slice(-2);
      if ('stream_options' in body) return misunderstood('stream_options');
      return before?.['role'] === 'tool' && last?.['role'] === 'user'
        ? misunderstood('order')
        : note;
    },
    /problem +compat +set api\.compat\.stream_options to false, api\.compat\.reply_after_tools to true$/m,
  ],
  [
    'whose model prints its calls',
    () => ({
      kind: 'answer',
      text: '<tool_call>{"name":"note","arguments":{"text":"ready"}}</tool_call>',
    }),
    /problem +compat +set api\.compat\.text_tool_calls to true$/m,
  ],
])('it says what to set for a server %s', async (_, chat, words) => {
  const { code, out } = await doctor({ models: serves({}), chat });

  expect(out).toMatch(/ok +chat +reachable/);
  expect(out).toMatch(words);
  expect(code).toBe(1);
});

test('with the suggested settings, doctor finds no problem', async () => {
  const chat: Asked = (body) => ('stream_options' in body ? misunderstood('stream_options') : note);

  const { code, out } = await doctor(
    { models: serves({}), chat },
    { compat: { stream_options: false } },
    '--json',
  );

  expect(code).toBe(0);
  expect(JSON.parse(out).probes[0].needs).toEqual({});
});

test('with auto, a server with responses alone is fine', async () => {
  const { code, out } = await doctor({ models: serves({}), responses: note });

  expect(out).toMatch(/ok +protocol +responses, since the server lacks chat/);
  expect(code).toBe(0);
});
