import { expect, test } from 'vitest';
import { createRateLimit } from '../../src/http/rpc-routes.ts';
import { startServer } from '../support/running.ts';

const granted = (mayAsk: () => boolean, asked: number): number =>
  Array.from({ length: asked }, mayAsk).filter(Boolean).length;

test('a burst may have twice the rate, then the rate applies, and an idle hour saves no more', () => {
  let now = 0;
  const mayAsk = createRateLimit(
    () => 50,
    () => now,
  );

  const atOnce = granted(mayAsk, 200);
  now += 1_000;
  const aSecondLater = granted(mayAsk, 200);
  now += 3_600_000;
  const anHourLater = granted(mayAsk, 200);

  expect([atOnce, aSecondLater, anHourLater]).toEqual([100, 50, 100]);
});

test('a smaller rate applies from the next request', () => {
  let rate = 50;
  const mayAsk = createRateLimit(
    () => rate,
    () => 0,
  );
  mayAsk();

  rate = 1;

  expect(granted(mayAsk, 200)).toBe(2);
});

test('requests over the rate are refused with a time to retry; wrong tokens and health checks do not count', async () => {
  const { base, headers } = await startServer({ requestsPerSecond: 1 });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'list', params: {} });
  const ask = (authorization: string) =>
    fetch(`${base}/a2a/status`, { method: 'POST', headers: { ...headers, authorization }, body });
  await Promise.all(Array.from({ length: 8 }, () => ask('Bearer wrong')));

  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(headers.authorization)));

  const refused = answers.find(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
  expect(refused?.headers.get('retry-after')).toBe('1');
  expect(await refused?.json()).toEqual({
    error: {
      code: 'too_many_requests',
      message: 'too many requests; send fewer per second, or send them as a batch',
    },
  });
  expect((await fetch(`${base}/health`)).status).toBe(200);
});
