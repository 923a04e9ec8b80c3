import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import { aRequest, ask } from '../../contracts/model.ts';

/** A port at which nobody listens, or somebody who ends each connection at its first bytes. */
const portOf = async (isOpen: boolean): Promise<number> => {
  const server = createServer((socket) => void socket.once('data', () => socket.resetAndDestroy()));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const close = () => new Promise((resolve) => server.close(resolve));
  if (isOpen) onTestFinished(() => void server.close());
  else await close();
  return typeof address === 'object' && address !== null ? address.port : 0;
};

const failureAt = async (baseURL: string) => {
  const model = createOpenAiChatModel({ apiKey: 'sk-test-key-0123456789', baseURL });
  const last = (await ask(model, aRequest())).at(-1);
  return last?.type === 'failed' ? last.failure : null;
};

test('a refused connection names the address, without its password', async () => {
  const port = await portOf(false);

  const failure = await failureAt(`http://127.0.0.1:${port}/v1`);

  expect(failure).toMatchObject({
    message: `the provider at http://127.0.0.1:${port} refused the connection: nothing listens there`,
    retryable: true,
  });
});

test('a connection that is cut is not called unreachable', async () => {
  const port = await portOf(true);

  const failure = await failureAt(`http://127.0.0.1:${port}/v1`);

  expect(failure?.message).toBe(
    `the provider at http://127.0.0.1:${port} cut the connection before it answered`,
  );
  expect(failure?.retryable).toBe(true);
});

test('a name without a host says so', async () => {
  const failure = await failureAt('http://no-such-host.invalid/v1');

  expect(failure?.message).toMatch(/http:\/\/no-such-host\.invalid/);
  expect(failure?.message).toMatch(/no host|no answer now/);
});
