import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type AiSdkOptions, createAiSdkModel } from '../../../src/actors/model/ai-sdk.ts';
import type { ModelMessage } from '../../../src/actors/model/port.ts';
import { aRequest, ask } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const answer: Answer = { kind: 'answer', text: 'I look.' };
const secretAccessKey = 'secret-access-key-0123456789';
const access = {
  ...({ cloud: 'aws', region: 'eu-west-1', accessKeyId: 'AKIA0123456789ABCDEF' } as const),
  ...{ secretAccessKey, sessionToken: 'session-token-0123456789' },
};

const openBedrock = async (given: Answer, more: Partial<AiSdkOptions> = {}) => {
  const server = await startModelServer(() => given);
  const options = { type: 'bedrock' as const, apiKey: 'bedrock-key-0123456789', ...more };
  return { ...server, model: createAiSdkModel({ ...options, baseURL: server.origin }) };
};

const call = { id: 'c1', tool: 'read', arguments: '{}' };
const result: ModelMessage = { role: 'tool', callId: 'c1', tool: 'read', text: 'x', ok: true };
const said = (text: string, calls = [call]): ModelMessage => ({ role: 'assistant', text, calls });
const user: ModelMessage = { role: 'user', text: 'Do it.' };
const turns = [user, said('I look.'), result];

test('the key of Bedrock is a bearer token', async () => {
  const { model, requests } = await openBedrock(answer);

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', text: 'I look.' });
  expect(requests[0]?.headers.authorization).toBe('Bearer bedrock-key-0123456789');
});

test('without a key requests to Bedrock are signed for the region', async () => {
  const { model, requests } = await openBedrock(answer, { apiKey: '', access });

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', text: 'I look.' });
  const { headers } = requests[0] ?? {};
  expect(headers?.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKIA0123456789ABCDEF\/\d{8}\/eu-west-1\/bedrock\/aws4_request/,
  );
  expect(headers?.['x-amz-security-token']).toBe('session-token-0123456789');
});

test.each<[string, string, NonNullable<AiSdkOptions['cache']>, number, string]>([
  ['Claude', claude, 'auto', 3, '{"type":"default"}'],
  ['Claude, for an hour', claude, '1h', 3, '{"type":"default","ttl":"1h"}'],
  [
    ...(['an older Claude, which has no hour', 'anthropic.claude-sonnet-4-v1:0'] as const),
    ...(['1h', 3, '{"type":"default"}'] as const),
  ],
  ['Nova, which takes it for the system alone', 'us.amazon.nova-pro-v1:0', 'auto', 1, ''],
  ['Claude, which is not asked', claude, 'off', 0, ''],
  ['Claude 3, which would refuse it', 'anthropic.claude-3-haiku-v1:0', 'auto', 0, ''],
  ['Llama, which would refuse it', 'meta.llama4-v1:0', 'auto', 0, ''],
])('Bedrock keeps what was read for %s', async (_, name, cache, points, point) => {
  const { model, requests } = await openBedrock(answer, { cache });

  const last = (await ask(model, aRequest({ model: name, messages: turns }))).at(-1);

  expect(last).toMatchObject({ type: 'answered' });
  const { system, messages } = requests[0]?.body ?? {};
  const sent = JSON.stringify([system, messages]);
  expect(sent.match(/"cachePoint"/g) ?? []).toHaveLength(points);
  expect(sent).toContain(point);
});

test('what Bedrock read from its cache is part of the input', async () => {
  const details = { cached_tokens: 80, cache_write_tokens: 15 };
  const usage = { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: details };
  const { model } = await openBedrock({ kind: 'answer', text: 'I', usage });

  expect((await ask(model)).at(-1)).toMatchObject({
    usage: { inputTokens: 100, outputTokens: 7, cachedTokens: 80, cacheWriteTokens: 15 },
  });
});

test.each<[string, readonly ModelMessage[]]>([
  ['a result without its call', [user, said('I look.', []), result]],
  ['a call without its result', [user, said('I look.'), user]],
  ['an empty text', [{ role: 'user', text: '' }]],
  ['an answer first', [said('I look.'), result]],
])('the scripted Bedrock refuses %s', async (_, messages) => {
  const { model } = await openBedrock(answer);

  expect((await ask(model, aRequest({ messages }))).at(-1)).toMatchObject({
    failure: { retryable: false, facts: { kind: 'http', status: 400 } },
  });
});

test('two turns of the user go to Bedrock as one', async () => {
  const { model } = await openBedrock(answer);

  const messages = [...turns, user, said('', []), user];
  expect((await ask(model, aRequest({ messages }))).at(-1)).toMatchObject({ type: 'answered' });
});

test('where only words are wanted, calls and results stay in the conversation', async () => {
  const { model, requests } = await openBedrock(answer);

  await ask(model, aRequest({ messages: turns, wordsOnly: true }));

  expect(JSON.stringify(requests[0]?.body['messages'])).toContain('"toolResult"');
});

const refusal = (status: number, type: string, message: string): Answer => ({
  ...{ kind: 'status', status, body: { message } },
  headers: { 'x-amzn-errortype': `${type}:http://internal.amazon.com/` },
});
const thrown = (type: string, message: string): Answer => ({
  kind: 'error_event',
  error: { type, message },
});

test.each<[string, Answer, object]>([
  [
    'a limit',
    refusal(429, 'ThrottlingException', 'Too many tokens, please wait before trying again.'),
    { retryable: true, facts: { status: 429 } },
  ],
  [
    'a limit in the stream',
    thrown('throttlingException', 'Too many requests'),
    {
      retryable: true,
      message: 'the provider reported an error: Too many requests',
      facts: { status: 429 },
    },
  ],
  [
    'a refused request in the stream',
    thrown('validationException', 'no'),
    { retryable: false, facts: { status: 400 } },
  ],
  [
    'an outage in the stream',
    thrown('internalServerException', 'sorry'),
    { retryable: true, facts: { status: 500 } },
  ],
  [
    'old credentials',
    refusal(403, 'ExpiredTokenException', 'The security token included in the request is expired'),
    { retryable: false, facts: { kind: 'auth' } },
  ],
  [
    'a model without access',
    refusal(403, 'AccessDeniedException', "You don't have access to the model."),
    { retryable: false, message: "the provider answered 403 You don't have access to the model." },
  ],
  [
    'a conversation that is too long',
    refusal(400, 'ValidationException', 'Input is too long for requested model.'),
    { retryable: false, facts: { kind: 'context_overflow' } },
  ],
  [
    'a signature that does not fit',
    refusal(403, 'InvalidSignatureException', 'The request signature we calculated does not match'),
    { retryable: false, facts: { kind: 'auth' } },
  ],
  ['a cut answer', { kind: 'cut' }, { retryable: true, facts: { kind: 'cut_off' } }],
  ['half an event', { kind: 'half_event' }, { retryable: true }],
  ['no JSON', { kind: 'bad_json' }, { retryable: true }],
  ['a reset', { kind: 'reset' }, { retryable: true }],
  ['a web page', { kind: 'html' }, { retryable: true, facts: { kind: 'content_type' } }],
  [
    'a filtered answer',
    { kind: 'answer', finish: 'content_filter' },
    { facts: { kind: 'content_filter' } },
  ],
  [
    'a secret that is repeated',
    refusal(400, 'ValidationException', `The request was signed with ${secretAccessKey}`),
    { message: 'the provider answered 400 The request was signed with [secret]' },
  ],
])('from Bedrock, %s fails the call by its name', async (_, given, failure) => {
  const { model } = await openBedrock(given, {
    ...{ apiKey: '', access, secrets: [secretAccessKey] },
  });

  const events = await ask(model);

  expect(events.at(-1)).toMatchObject({ type: 'failed', failure });
  expect(JSON.stringify(events)).not.toContain(secretAccessKey);
});

/** Where Google gives out tokens to a workload of another cloud, and what it answers. */
const startTokens = async (status: number, body: object) => {
  let given = 0;
  const server = createServer((request, response) => {
    given += 1;
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const folder = temporaryFolder();
  const subject = join(folder, 'subject');
  writeFileSync(subject, 'from the other cloud');
  const credentialsFile = join(folder, 'credentials.json');
  writeFileSync(
    credentialsFile,
    JSON.stringify({
      ...{ type: 'external_account', audience: 'any' },
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
      credential_source: { file: subject },
    }),
  );
  return { credentialsFile, given: () => given };
};
const token = { access_token: 'google-token-0123456789', expires_in: 3600, token_type: 'Bearer' };

const openVertex = async (credentialsFile: string | null, apiKey = '') => {
  const server = await startModelServer(() => answer);
  const model = createAiSdkModel({
    ...{ type: 'vertex', apiKey, baseURL: `${server.origin}/v1beta1/projects/p/locations/eu` },
    access: credentialsFile === null ? undefined : { cloud: 'google', credentialsFile },
  });
  return { ...server, model };
};

test('Vertex gets a token for the credentials, once for two calls, for Gemini and for Claude', async () => {
  const { credentialsFile, given } = await startTokens(200, token);
  const { model, requests } = await openVertex(credentialsFile);

  const gemini = await ask(model, aRequest({ model: 'gemini-2.5-pro' }));
  const other = await ask(model, aRequest({ model: 'claude-sonnet-4-5@20250929' }));

  expect([gemini.at(-1), other.at(-1)]).toMatchObject([{ text: 'I look.' }, { text: 'I look.' }]);
  expect(requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
    [
      '/v1beta1/projects/p/locations/eu/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
      'Bearer google-token-0123456789',
    ],
    [
      '/v1/projects/p/locations/eu/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict',
      'Bearer google-token-0123456789',
    ],
  ]);
  expect(JSON.stringify(requests[1]?.body)).toContain('"cache_control"');
  expect(given()).toBe(1);
});

test.each([
  [400, { error: 'invalid_grant' }, { retryable: false, facts: { kind: 'auth' } }],
  [503, { error: 'later' }, { retryable: true, facts: { kind: 'network' } }],
])('no token of Google (%i) fails the call by its name', async (status, body, failure) => {
  const { credentialsFile } = await startTokens(status, body);
  const { model, requests } = await openVertex(credentialsFile);

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'failed', failure });
  expect(requests).toEqual([]);
});

test('a file of credentials that is missing is told', async () => {
  const { model } = await openVertex(join(temporaryFolder(), 'none.json'));

  expect((await ask(model)).at(-1)).toMatchObject({
    failure: { message: expect.stringMatching(/GOOGLE_APPLICATION_CREDENTIALS: ENOENT/) },
  });
});

test('Claude on Vertex says that it takes no key', async () => {
  const { model } = await openVertex(null, 'vertex-key-0123456789');

  expect((await ask(model, aRequest({ model: 'claude-opus-4-1' }))).at(-1)).toMatchObject({
    failure: { message: expect.stringMatching(/^Claude on Vertex takes no API key: set GOOGLE_/) },
  });
});
