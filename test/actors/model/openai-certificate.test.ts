import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { ask } from '../../contracts/model.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { startModelServer } from '../../support/model-server.ts';
import { describeUnless, noOpenssl } from '../../support/needs.ts';

const apiKey = 'sk-test-key-0123456789';
const oneCall = fileURLToPath(new URL('./one-call.mjs', import.meta.url));

/**
 * A provider at https that signed its certificate itself, for `name`; `certificate` is the path of
 * it.
 */
const startTlsServer = async (name?: string) => {
  const { path, tls } = makeCertificate(name);
  return {
    certificate: path,
    ...(await startModelServer(() => ({ kind: 'answer', text: 'ok' }), { tls })),
  };
};

/** The last event of a call in a process that trusts the certificate. */
const askTrusting = async (
  protocol: string,
  { baseURL, certificate }: { baseURL: string; certificate: string },
) => {
  const { stdout } = await execa(process.execPath, [oneCall, protocol, baseURL], {
    env: { NODE_EXTRA_CA_CERTS: certificate },
  });
  return JSON.parse(stdout);
};

describeUnless(noOpenssl).each(['chat', 'responses'] as const)(
  'a provider at https, by %s',
  (protocol) => {
    test('answers when its own certificate is trusted', async () => {
      const server = await startTlsServer();

      expect(await askTrusting(protocol, server)).toMatchObject({ type: 'answered', text: 'ok' });
      expect(server.requests).toHaveLength(1);
    });

    test('is a failure that names the certificate when it is not trusted, and never gets the key', async () => {
      const { baseURL, requests } = await startTlsServer();

      const events = await ask(createOpenAiModel({ protocol, apiKey, baseURL }));

      expect(events).toMatchObject([
        {
          type: 'failed',
          failure: {
            code: 'model_failed',
            message: expect.stringContaining(
              'certificate of the provider is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)',
            ),
            facts: { kind: 'certificate', certificate: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
            retryable: false,
          },
        },
      ]);
      expect(requests).toEqual([]);
    });

    test('is a failure that names the certificate when that is for another host', async () => {
      const server = await startTlsServer('DNS:example.org');

      expect(await askTrusting(protocol, server)).toMatchObject({
        failure: {
          facts: { kind: 'certificate', certificate: 'ERR_TLS_CERT_ALTNAME_INVALID' },
          retryable: false,
        },
      });
      expect(server.requests).toEqual([]);
    });
  },
);
