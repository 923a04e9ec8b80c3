import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { createAiSdkModel } from '../../../src/actors/model/ai-sdk.ts';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { createProviderFetch } from '../../../src/actors/model/provider-fetch.ts';
import { proxyFor, proxySecrets } from '../../../src/actors/model/proxy-choice.ts';
import { ask } from '../../contracts/model.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { startProxy } from '../../support/connect-proxy.ts';
import { startModelServer } from '../../support/model-server.ts';
import { noOpenssl, testUnless } from '../../support/needs.ts';

const apiKey = 'sk-test-key-0123456789';
const proxy = 'http://proxy.example:3128';
const both = { HTTPS_PROXY: proxy, HTTP_PROXY: 'http://plain.example' };
const except = (NO_PROXY: string) => ({ ...both, NO_PROXY });

test.each<[string, Readonly<Record<string, string>>, string | null]>([
  ['https://api.example.com/v1', {}, null],
  ['https://api.example.com/v1', both, 'http://proxy.example:3128 HTTPS_PROXY'],
  ['http://gpu.example:8000/v1', both, 'http://plain.example HTTP_PROXY'],
  ['https://api.example.com', { HTTP_PROXY: proxy }, null],
  ['https://api.example.com', { ...both, https_proxy: 'low:1' }, 'http://low:1 https_proxy'],
  ['https://api.example.com', except('*'), null],
  ['https://api.example.com', except('other.com, example.com'), null],
  ['https://api.example.com', except('.example.com'), null],
  ['https://api.example.com', except('*.EXAMPLE.com'), null],
  ['https://api.example.com', except('api.example.com:443'), null],
  [
    'https://api.example.com',
    except('api.example.com:8443'),
    'http://proxy.example:3128 HTTPS_PROXY',
  ],
  ['https://badexample.com', except('example.com'), 'http://proxy.example:3128 HTTPS_PROXY'],
  ['https://api.example.com', { ...both, no_proxy: 'example.com' }, null],
  ['http://10.1.2.3:11434', except('10.0.0.0/8'), null],
  ['http://11.1.2.3:11434', except('10.0.0.0/8'), 'http://plain.example HTTP_PROXY'],
  ['http://[fd00::1]:11434', except('fd00::/8'), null],
  ['http://10.1.2.3', except('10.0.0.0/99 10.1.2.3'), null],
  ['http://127.0.0.1:11434', both, null],
  ['http://127.9.9.9:11434', both, null],
  ['http://[::1]:11434', both, null],
  ['http://localhost:1234', both, null],
])('to %s with %o goes through %s', (address, env, expected) => {
  const chosen = proxyFor(address, env);

  expect(chosen === null ? null : `${chosen.url.origin} ${chosen.variable}`).toBe(expected);
});

test.each(['socks5://proxy.example:1080', 'http://'])('%s is refused as a proxy', (HTTPS_PROXY) => {
  expect(() => proxyFor('https://api.example.com', { HTTPS_PROXY })).toThrow(
    'HTTPS_PROXY is not the http:// or https:// address of a proxy',
  );
});

test('the password of a proxy is secret in both ways of writing it', () => {
  const HTTPS_PROXY = 'http://user:pass%20word@proxy.example:3128';

  expect(proxySecrets({ HTTPS_PROXY, http_proxy: 'me:other@plain' })).toEqual([
    ...['pass%20word', 'pass word', 'other', 'other'],
  ]);
});

const open = {
  openai: (baseURL: string, fetch: typeof globalThis.fetch) =>
    createOpenAiModel({ apiKey, baseURL, protocol: 'chat', fetch }),
  anthropic: (baseURL: string, fetch: typeof globalThis.fetch) =>
    createAiSdkModel({ type: 'anthropic', apiKey, baseURL, fetch }),
};
const login = 'user:pass word';
const withLogin = 'user:pass%20word@';

test.each(['openai', 'anthropic'] as const)('calls by %s go through the proxy', async (type) => {
  const server = await startModelServer(() => ({ kind: 'answer', text: 'I read it.' }));
  const { hosts, address } = await startProxy({ port: Number(new URL(server.origin).port), login });
  const fetch = createProviderFetch({ HTTP_PROXY: `http://${withLogin}${address}` });

  const last = (await ask(open[type]('http://models.example/v1', fetch))).at(-1);

  expect(last).toMatchObject({ type: 'answered', text: 'I read it.' });
  expect(hosts).toEqual(['models.example']);
  expect(server.requests[0]?.headers['proxy-authorization']).toBeUndefined();
});

testUnless(noOpenssl)(
  'a call to https is tunnelled, and NODE_EXTRA_CA_CERTS counts behind a proxy',
  async () => {
    const { path, tls } = makeCertificate('DNS:models.example');
    const server = await startModelServer(() => ({ kind: 'answer', text: 'ok' }), { tls });
    const { hosts, address } = await startProxy({ port: Number(new URL(server.origin).port) });
    const oneCall = fileURLToPath(new URL('./one-call.mjs', import.meta.url));
    const call = (env: Readonly<Record<string, string>>) =>
      execa(process.execPath, [oneCall, 'chat', 'https://models.example/v1'], {
        env: { HTTPS_PROXY: address, NODE_EXTRA_CA_CERTS: '', NO_PROXY: '', ...env },
      });

    const trusting = await call({ NODE_EXTRA_CA_CERTS: path });
    const other = await call({});

    expect(JSON.parse(trusting.stdout)).toMatchObject({ type: 'answered', text: 'ok' });
    expect(trusting.stderr).toBe('');
    expect(JSON.parse(other.stdout)).toMatchObject({ failure: { facts: { kind: 'certificate' } } });
    expect(hosts).toEqual(['models.example:443', 'models.example:443']);
    expect(server.requests).toHaveLength(1);
  },
);

test.each([
  ['http:', 'of HTTP'],
  ['https:', 'of HTTPS'],
])('a proxy that refuses the password fails a call to %s by its name', async (scheme) => {
  const { address } = await startProxy({ port: 1, login });
  const at = `http://user:wrong-password@${address}`;
  const model = open.openai(
    `${scheme}//models.example/v1`,
    createProviderFetch({ HTTP_PROXY: at, HTTPS_PROXY: at }),
  );

  const events = await ask(model);

  expect(events.at(-1)).toMatchObject({
    type: 'failed',
    failure: {
      retryable: false,
      facts: { kind: 'proxy' },
      message: expect.stringMatching(
        /^the proxy http:\/\/127\.0\.0\.1:\d+ \(HTTPS?_PROXY\) refused its user or password/,
      ),
    },
  });
  expect(JSON.stringify(events)).not.toContain('wrong-password');
});

test('a proxy that is not there is told by its name', async () => {
  const fetch = createProviderFetch({ HTTPS_PROXY: 'http://127.0.0.1:9' });

  expect((await ask(open.openai('https://models.example/v1', fetch))).at(-1)).toMatchObject({
    failure: {
      ...{ retryable: true, facts: { kind: 'network' } },
      message: 'the proxy http://127.0.0.1:9 (HTTPS_PROXY) cannot be reached (ECONNREFUSED)',
    },
  });
});

test('a provider on this machine is asked without the proxy', async () => {
  const server = await startModelServer(() => ({ kind: 'answer', text: 'ok' }));
  const fetch = createProviderFetch({ HTTP_PROXY: 'http://127.0.0.1:9' });

  expect((await ask(open.openai(server.baseURL, fetch))).at(-1)).toMatchObject({ text: 'ok' });
});
