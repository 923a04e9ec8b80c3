import { once } from 'node:events';
import { connect } from 'node:net';
import { Webhooks } from '@octokit/webhooks';
import { expect, test } from 'vitest';
import { startServer } from '../support/running.ts';

const secret = 'a secret of the webhook of a test';
const mebibyte = 1024 * 1024;

const open = async (more: object = { forgeSecret: secret }) => {
  const woken: string[] = [];
  const wakeForge = async (repository: string) => void woken.push(repository);
  const server = await startServer({ ...more, wakeForge });
  const post = async (body: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${server.base}/forge/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    const text = await response.text();
    return { status: response.status, text };
  };
  const signed = async (body: string, by = secret) => ({
    'x-hub-signature-256': await new Webhooks({ secret: by }).sign(body),
  });
  return { ...server, woken, post, signed };
};
const delivery = (more: object = {}) =>
  JSON.stringify({ action: 'opened', repository: { full_name: 'acme/shop' }, ...more });

test('a signed delivery wakes the look at its repository, and a repeated one does so again', async () => {
  const { post, signed, woken } = await open();
  const headers = { ...(await signed(delivery())), 'x-github-delivery': '1' };

  const answers = [await post(delivery(), headers), await post(delivery(), headers)];

  expect(answers).toEqual(Array(2).fill({ status: 202, text: '' }));
  expect(woken).toEqual(['acme/shop', 'acme/shop']);
});

test('without a secret the route is off', async () => {
  const { post, signed, woken } = await open({});

  expect((await post(delivery(), await signed(delivery()))).status).toBe(404);
  expect(woken).toEqual([]);
});

test.each<readonly [string, (body: string) => Readonly<Record<string, string>>]>([
  ['no signature', () => ({})],
  ['the signature of SHA-1', () => ({ 'x-hub-signature': `sha1=${'0'.repeat(40)}` })],
  ['half a signature', () => ({ 'x-hub-signature-256': 'sha256=00' })],
  ['a wrong signature', () => ({ 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` })],
  ['two signatures', () => ({ 'x-hub-signature-256': `sha256=${'0'.repeat(64)}, sha256=1` })],
])('a delivery with %s is refused, and says nothing of the right one', async (_, headersOf) => {
  const { post, woken } = await open();

  const { status, text } = await post(delivery(), headersOf(delivery()));

  expect([status, woken]).toEqual([401, []]);
  expect(text).not.toContain(secret);
  expect(text).not.toMatch(/[0-9a-f]{64}/);
});

test('a signature of another body, or by another secret, is refused', async () => {
  const { post, signed, woken } = await open();

  const other = await post(delivery(), await signed(delivery({ action: 'closed' })));
  const secretOther = await post(delivery(), await signed(delivery(), 'another secret'));

  expect([other.status, secretOther.status, woken]).toEqual([401, 401, []]);
});

test('somebody who guesses is throttled', async () => {
  const { post, woken } = await open();
  const headers = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` };
  const statuses: number[] = [];

  for (let n = 0; n < 25; n += 1) statuses.push((await post(delivery(), headers)).status);

  expect(statuses).toEqual([...Array(20).fill(401), ...Array(5).fill(429)]);
  expect(woken).toEqual([]);
});

test.each([
  ['no JSON', 'hello'],
  ['no repository', '{}'],
  ['a repository without a name', '{"repository":{"full_name":7}}'],
  ['a form', `payload=${encodeURIComponent(delivery())}`],
  ['deep nesting', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
])('a signed delivery with %s is refused', async (_, body) => {
  const { post, signed, woken } = await open();

  expect((await post(body, await signed(body))).status).toBe(400);
  expect(woken).toEqual([]);
});

test('a body of 25 MiB is taken, and a larger one is not', async () => {
  const { post, signed, woken } = await open();
  const fill = (bytes: number) => delivery({ fill: 'x'.repeat(bytes - delivery().length - 10) });
  const [most, more] = [fill(25 * mebibyte), fill(25 * mebibyte + 1)];

  expect(most).toHaveLength(25 * mebibyte);
  expect((await post(most, await signed(most))).status).toBe(202);
  expect((await post(more, await signed(more))).status).toBe(413);
  expect(woken).toEqual(['acme/shop']);
});

/** A connection that has sent the head of a delivery, and what the server answers. */
const begin = async (port: number, length: string) => {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  let text = '';
  socket.setEncoding('utf8').on('data', (data) => {
    text += data;
  });
  socket.on('error', () => {});
  const ended = once(socket, 'close');
  socket.write(
    `POST /forge/webhook HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${length}\r\nx-hub-signature-256: sha256=${'0'.repeat(64)}\r\n\r\n`,
  );
  return { socket, answer: async () => [await ended, text][1] as string };
};

test('a body without an announced length ends at the bound', async () => {
  const { port } = await open();
  const { socket, answer } = await begin(port, 'transfer-encoding: chunked');
  const chunk = `${mebibyte.toString(16)}\r\n${'x'.repeat(mebibyte)}\r\n`;

  for (let n = 0; n < 26 && socket.writable; n += 1) socket.write(chunk);

  expect(await answer()).toMatch(/^HTTP\/1\.1 413 /);
});

test('a slow body is given up, and two of them keep no other memory', {
  tags: ['slow'],
}, async () => {
  const { port, post, signed } = await open();
  const slow = [
    await begin(port, 'content-length: 1000'),
    await begin(port, 'content-length: 1000'),
  ];
  for (const { socket } of slow) socket.write('{');

  await expect
    .poll(async () => (await post(delivery(), await signed(delivery()))).status)
    .toBe(429);
  for (const { answer } of slow) expect(await answer()).toMatch(/^HTTP\/1\.1 408 /);
  expect((await post(delivery(), await signed(delivery()))).status).toBe(202);
});
