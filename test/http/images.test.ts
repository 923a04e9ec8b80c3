import { request } from 'node:http';
import { expect, test } from 'vitest';
import { imageBytesAtMost } from '../../src/actors/files/image.ts';
import { jpeg, png, webp } from '../support/images.ts';
import { startServer, token } from '../support/running.ts';

const open = async () => {
  const server = await startServer();
  const upload = async (body: Buffer | ReadableStream, type: string | null, more: object = {}) => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(type === null ? {} : { 'content-type': type }),
    };
    const init = { method: 'POST', headers, body, duplex: 'half', ...more };
    const response = await fetch(`${server.base}/images`, init as RequestInit);
    return { status: response.status, body: (await response.json()) as { digest: string } };
  };
  const get = (path: string) =>
    fetch(`${server.base}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { ...server, upload, get };
};

test('an uploaded image is attached to a task, listed with it, and served as it is', async () => {
  const { upload, call, get } = await open();
  const image = png();

  const { status, body } = await upload(image, 'image/png');
  expect([status, body]).toEqual([
    200,
    {
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      media_type: 'image/png',
      bytes: image.length,
    },
  ]);
  const attachments = [{ digest: body.digest, name: 'shot.png' }];
  const { result } = await call('create', { description: 'look at it', attachments });
  const listed = [{ ...attachments[0], media_type: 'image/png', bytes: image.length }];
  expect(result.attachments).toEqual(listed);
  expect((await call('status', { task_id: result.task_id })).result.attachments).toEqual(listed);

  const served = await get(`/images/${result.task_id}/${body.digest}`);
  expect(served.status).toBe(200);
  expect(Object.fromEntries(served.headers)).toMatchObject({
    'content-type': 'image/png',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
  });
  expect(Buffer.from(await served.arrayBuffer())).toEqual(image);
  // What only waits belongs to no task.
  await upload(jpeg, 'image/jpeg');
  for (const [path, status] of [
    [`/images/${result.task_id}/${'0'.repeat(64)}`, 404],
    [`/images/bd-none/${body.digest}`, 404],
    [`/images/${result.task_id}/..%2f..`, 404],
    [`/images//${body.digest}`, 400],
  ] as const)
    expect([path, (await get(path)).status]).toEqual([path, status]);
});

test('three kinds of images are taken by their first bytes, whatever the header says', async () => {
  const { upload } = await open();
  const refused = (message: string) => ({
    status: 415,
    body: { error: { code: 'unsupported_media_type', message } },
  });

  expect((await upload(webp, 'image/webp')).status).toBe(200);
  expect((await upload(jpeg, 'image/jpeg')).status).toBe(200);
  expect(await upload(png(), 'image/jpeg')).toEqual(
    refused('the body is image/png, not image/jpeg'),
  );
  expect(await upload(Buffer.from('<svg onload="x">'), 'image/png')).toEqual(
    refused('the body is no PNG, JPEG or WebP image'),
  );
  expect(await upload(Buffer.alloc(0), 'image/png')).toMatchObject({ status: 415 });
  const types = ['image/svg+xml', 'image/gif', 'application/json', 'text/plain', null];
  for (const type of types)
    expect(await upload(png(), type)).toEqual(
      refused('send Content-Type: image/png, image/jpeg, image/webp'),
    );
});

test('an image is no body of another route, and its route takes no token in the address', async () => {
  const { base, headers, get } = await open();
  const post = (path: string, more: Record<string, string>) =>
    fetch(`${base}${path}`, { method: 'POST', headers: more, body: png() });

  const other = await post('/a2a/execute', { ...headers, 'content-type': 'image/png' });
  expect(other.status).toBe(415);
  expect((await post('/images', { 'content-type': 'image/png' })).status).toBe(401);
  expect((await post(`/images?token=${token}`, { 'content-type': 'image/png' })).status).toBe(401);
  expect((await fetch(`${base}/images/bd-1/${'0'.repeat(64)}`)).status).toBe(401);
  expect((await get('/images')).status).toBe(405);
});

test('a body that is too large is refused before it has arrived', async () => {
  const { port, upload } = await open();
  const refused = {
    status: 413,
    body: {
      error: {
        code: 'payload_too_large',
        message: `an image holds at most ${imageBytesAtMost} bytes`,
      },
    },
  };
  // A client whose server has hung up may read on: it must find an end.
  let left = 1_000;
  const long = new ReadableStream({
    pull: (controller) => {
      left -= 1;
      if (left < 0) controller.close();
      else controller.enqueue(png(1, { padding: 60_000 }));
    },
  });

  const announced = await new Promise((resolve, reject) => {
    const sent = request(
      {
        ...{ port, host: '127.0.0.1', method: 'POST', path: '/images' },
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'image/png',
          'content-length': imageBytesAtMost + 1,
        },
      },
      (response) => resolve(response.statusCode),
    );
    sent.once('error', reject);
    // Not one byte of the body is sent.
    sent.flushHeaders();
  });

  expect(announced).toBe(413);
  expect(
    await upload(png(1, { padding: imageBytesAtMost - png().length - 12 }), 'image/png'),
  ).toMatchObject({ status: 200 });
  expect(
    await upload(png(1, { padding: imageBytesAtMost - png().length - 11 }), 'image/png'),
  ).toEqual(refused);
  // The server ends the connection: what comes later than its answer, fetch may not see.
  const streamed = await upload(long, 'image/png').catch(() => refused);
  expect(streamed).toEqual(refused);
});
