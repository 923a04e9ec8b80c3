import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { startProxy } from '../support/connect-proxy.ts';
import { startModelServer } from '../support/model-server.ts';
import { noSandbox, testUnless } from '../support/needs.ts';

/** A person who has one key and has set nothing else. */
const answers = [
  {
    text: 'I write it.',
    calls: [{ id: 'c1', name: 'write', arguments: '{"path":"hello.txt","content":"hi\\n"}' }],
    thought: { field: '', text: 'A file.' },
  },
  { calls: [{ id: 'c2', name: 'finish', arguments: '{"status":"done","summary":"written"}' }] },
];

testUnless(noSandbox).each([
  ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'anthropic/claude-sonnet-4-5', '/v1/messages'],
  [
    ...(['GEMINI_API_KEY', 'GEMINI_BASE_URL', 'google/gemini-2.5-pro'] as const),
    '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
  ],
])('with %s alone a task is done by its provider', async (key, address, model, path) => {
  const provider = await startModelServer((_, number) => ({
    ...{ kind: 'answer' },
    ...answers[number - 1],
    usage: {
      ...{ prompt_tokens: 100, completion_tokens: 5 },
      prompt_tokens_details: { cached_tokens: 90 },
    },
  }));
  const project = openProject({});
  const env = { [key]: 'sk-one-key-0123456789', [address]: provider.origin };

  const doctor = await project.agentWith(env, 'doctor');
  const done = await project.agentWith(env, 'engineer', 'Say hello in a file');
  const again = await project.agentWith(env, 'engineer', 'Say hello again');
  const shown = await project.agentWith(env, 'list', '--json');
  const log = readFileSync(join(project.stateDir, 'server.log'), 'utf8');

  expect(doctor.out).toMatch(new RegExp(`${model} at 127\\.0\\.0\\.1:\\d+; ${key} is set`));
  const note = new RegExp(`agents use ${model}, since ${key} is set; to use another: agent config`);
  expect(log).toMatch(new RegExp(`^  note +${note.source}`, 'm'));
  expect(doctor.out.replaceAll(/\s+/g, ' ')).toMatch(new RegExp(`note model ${note.source}`));
  expect(done.code, done.err).toBe(0);
  expect(done.err).toMatch(note);
  expect(again.err).not.toMatch(note);
  expect(provider.requests.slice(0, 2).map((seen) => seen.path)).toEqual([path, path]);
  const [task] = JSON.parse(shown.out);
  expect(task).toMatchObject({ status: 'complete' });
  expect(task.usage).toMatchObject({ input_tokens: 200, cached_tokens: 180, output_tokens: 10 });
});

test.each([
  [{ OPENAI_API_KEY: 'k' }, {}],
  [{ ANTHROPIC_API_KEY: 'k' }, { provider_model: 'anthropic/claude-opus-4-1' }],
  [{ ANTHROPIC_API_KEY: 'k' }, { backend: 'codex' }],
])('with %o and %o no key has chosen, and nothing is said', async (env, api) => {
  const doctor = await openProject({ api }).agentWith(env, 'doctor');

  expect(doctor.out).not.toContain('agents use');
});

test('a key that the server was started without is named, whoever its provider is', async () => {
  const project = openProject({ providers: { lmstudio: { base_url: 'http://127.0.0.1:9/v1' } } });
  const env = { PATH: '/usr/bin:/bin', OLLAMA_HOST: '127.0.0.1:9' };
  const started = await project.agentWith(env, 'server', 'start');

  const run = await project.agentWith(
    { ...env, OPENROUTER_API_KEY: 'sk-or-0123456789' },
    ...['engineer', 'Say hello in a file'],
  );

  const others = /agent auth login anthropic.*OPENROUTER_API_KEY.*codex login.*ollama/;
  expect(started.out).toMatch(others);
  expect(run).toMatchObject({ code: 7, err: expect.stringMatching(others) });
  expect(run.err).toContain('note: OPENROUTER_API_KEY is set here, but was not where the server');
});

test.each([
  ['antropic/claude-sonnet-4-5', 'there is no provider antropic; did you mean anthropic?'],
  ['gemini/gemini-2.5-pro', 'there is no provider gemini; did you mean google?'],
  ['gpt-5.1', null],
])('with the model %s doctor asks what was meant: %s', async (provider_model, asked) => {
  const project = openProject({ api: { provider_model } });

  const doctor = await project.agentWith({ OPENAI_API_KEY: 'k' }, 'doctor');

  const found = /there is no provider[^?]*\?/.exec(doctor.out.replaceAll(/\s+/g, ' '));
  expect(found?.[0] ?? null).toBe(asked);
});

testUnless(noSandbox).each([
  ['auto', true],
  ['off', false],
])(
  'OpenRouter at an address of your own, cache %s: asked to keep a prefix: %s',
  async (cache, asks) => {
    const provider = await startModelServer(() => ({ kind: 'answer', ...answers[1] }));
    const openrouter = { base_url: `${provider.origin}/v1`, cache };
    const project = openProject({ providers: { openrouter } });
    const model = 'openrouter/anthropic/claude-sonnet-4.5';

    await project.agentWith({ OPENROUTER_API_KEY: 'k' }, 'engineer', 'Say hello', '--model', model);

    expect(JSON.stringify(provider.requests[0]?.body).includes('cache_control')).toBe(asks);
  },
);

test('a run that cannot have its model says why, and what to do', async () => {
  const project = openProject({});
  const env = { ANTHROPIC_API_KEY: 'sk-ant-0123456789' };
  const run = async (model: string) => {
    const { code, err } = await project.agentWith(env, 'engineer', 'Say hello', '--model', model);
    return { code, err: err.replaceAll(/\s+/g, ' ') };
  };

  expect(await run('antropic/claude-sonnet-4-5')).toMatchObject({
    code: 78,
    err: expect.stringContaining('there is no provider antropic; did you mean anthropic?'),
  });
  expect(await run('openai/gpt-5.1')).toMatchObject({
    code: 7,
    err: expect.stringContaining(
      "OPENAI_API_KEY is not set: keep a key with 'agent auth login openai'",
    ),
  });
});

test.each(['ANTHROPIC_BASE_URL', 'GEMINI_BASE_URL'])(
  '%s that is no address is named',
  async (name) => {
    const doctor = await openProject({}).agentWith({ [name]: '127.0.0.1:18101' }, 'doctor');

    expect(doctor.out).toContain(`${name}: expected an address like https://host/path`);
  },
);

test('a provider without an address is named by doctor and refuses runs', async () => {
  const project = openProject({ api: { provider_model: 'azure/gpt-5.1', backend: 'builtin' } });
  const env = { AZURE_OPENAI_API_KEY: 'az-0123456789' };

  const doctor = await project.agentWith(env, 'doctor');
  const run = await project.agentWith(env, 'engineer', 'Say hello in a file');

  const advice = 'agent config set providers.azure.base_url <address>';
  expect(doctor.out.replaceAll(/\s+/g, ' ')).toContain(advice);
  expect(run).toMatchObject({ code: 7, err: expect.stringContaining(advice) });
});

test('doctor names the role whose model has no key', async () => {
  const model = 'google/gemini-2.5-pro';
  const roles = { tester: { model }, engineer: { model: 'anthropic/claude-opus-4-1' } };
  const project = openProject({ roles });
  const env = { PATH: '/usr/bin:/bin', ANTHROPIC_API_KEY: 'sk-ant-0123456789' };

  const doctor = await project.agentWith(env, 'doctor');
  const both = await project.agentWith({ ...env, GEMINI_API_KEY: 'gem-0123456789' }, 'doctor');

  expect(doctor.code).toBe(1);
  expect(doctor.out.replaceAll(/\s+/g, ' ')).toContain(
    `problem tester ${model}, by roles.tester.model, but GEMINI_API_KEY is not set; keep a key with 'agent auth login google'`,
  );
  expect(both).toMatchObject({ code: 0, out: expect.not.stringMatching(/problem|engineer/) });
});

testUnless(noSandbox)('with credentials of AWS a task is done by Bedrock', async () => {
  const provider = await startModelServer((_, number) => ({
    ...{ kind: 'answer' },
    ...answers[number - 1],
  }));
  const model = 'bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
  const providers = { bedrock: { base_url: provider.origin } };
  const project = openProject({ api: { provider_model: model }, providers });
  const env = {
    ...{ AWS_ACCESS_KEY_ID: 'AKIA0123456789ABCDEF', AWS_REGION: 'eu-west-1' },
    AWS_SECRET_ACCESS_KEY: 'aws-secret-key-0123456789',
  };

  const none = await project.agent('doctor');
  const doctor = await project.agentWith(env, 'doctor');
  const done = await project.agentWith(env, 'engineer', 'Say hello in a file');

  expect(none.out).toMatch(/AWS_REGION with AWS_BEARER_TOKEN_BEDROCK, .* is not set/);
  expect(doctor.out).toMatch(/at 127\.0\.0\.1:\d+; AWS_ACCESS_KEY_ID is set/);
  expect(done.code, done.err).toBe(0);
  expect(provider.requests.map((seen) => seen.path)).toEqual(
    Array(2).fill(`/model/${encodeURIComponent(model.slice('bedrock/'.length))}/converse-stream`),
  );
});

testUnless(noSandbox)('a task is done through the proxy, whose password nobody sees', async () => {
  const provider = await startModelServer((_, number) => ({
    ...{ kind: 'answer' },
    ...answers[(number - 1) % 2],
  }));
  const login = 'me:proxy-password-0123';
  const port = Number(new URL(provider.origin).port);
  const { hosts, address } = await startProxy({ port, login });
  const work = { type: 'anthropic', base_url: 'http://models.internal/v1', key_env: 'WORK_KEY' };
  const project = openProject({ api: { provider_model: 'work/sonnet' }, providers: { work } });
  const env = { WORK_KEY: 'sk-work-0123456789', HTTP_PROXY: `http://${login}@${address}` };

  const doctor = await project.agentWith(env, 'doctor');
  const probed = await project.agentWith(env, 'doctor', '--model');
  const refused = await project.agentWith(
    { ...env, HTTP_PROXY: `http://me:wrong-password-0123@${address}` },
    ...['doctor', '--model'],
  );
  const done = await project.agentWith(env, 'engineer', 'Say hello in a file');

  expect(doctor.out).toContain(`calls to the provider go through http://${address}, by HTTP_PROXY`);
  expect(refused.out).toContain('refused its user or password (HTTP 407)');
  expect(done.code, done.err).toBe(0);
  expect(new Set(hosts)).toEqual(new Set(['models.internal']));
  for (const { out, err } of [doctor, probed, refused, done])
    expect(out + err).not.toMatch(/proxy-password|wrong-password/);
});
