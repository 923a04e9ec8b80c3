import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createAiSdkModel } from '../../../src/actors/model/ai-sdk.ts';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { createHistories } from '../../../src/actors/store/rows/histories.ts';
import { crash } from '../../support/crash.ts';
import { jpeg, png } from '../../support/images.ts';
import { type Answer, type SeenRequest, startModelServer } from '../../support/model-server.ts';
import { type Running, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const wires = ['responses', 'chat', 'anthropic', 'google'] as const;
type WireName = (typeof wires)[number];

const callOf = (name: string, args: object, id = `call_${name}`): Answer => ({
  kind: 'answer',
  text: 'So.',
  thought: { field: '', text: 'Hm.' },
  calls: [{ id, name, arguments: JSON.stringify(args) }],
});
const finish = callOf('finish', { status: 'done', summary: 'well' });

const modelFor = (wire: WireName, baseURL: string) => {
  const options = { apiKey: 'sk-test-0123456789', baseURL };
  return wire === 'responses' || wire === 'chat'
    ? createOpenAiModel({ ...options, protocol: wire === 'chat' ? 'auto' : wire })
    : createAiSdkModel({ ...options, type: wire });
};

const attach = async ({ service }: Running, images: readonly Buffer[]) => {
  const attachments = [];
  for (const [at, bytes] of images.entries())
    attachments.push({ digest: (await service.upload(bytes)).digest, name: `shot-${at}.png` });
  return service.create({ description: 'fix the header', attachments });
};

const open = async (
  wire: WireName,
  answer: (number: number, seen: SeenRequest) => Answer,
  images: readonly Buffer[] = [png()],
) => {
  const provider = await startModelServer((seen, number) => answer(number, seen));
  const root = temporaryFolder();
  const setting: Setting = {
    root,
    model: modelFor(wire, provider.baseURL),
    options: { defaultModel: 'gpt-5.1' },
  };
  const running = await startSystem(setting);
  const { task_id: id } = await attach(running, images);
  const run = () => running.service.execute({ task: id, role: 'engineer', options: {} });
  return { provider, running, setting, id, root, run };
};

const base64 = (bytes: Buffer): string => bytes.toString('base64');
const journalOf = (running: Running, taskId: string): string =>
  JSON.stringify([
    running.store.read({ taskId, after: 0, limit: 1_000 }),
    running.store.steps(taskId, 1),
  ]);

/** The first message as the wire has it, and what follows the answer of the first turn. */
const shown: Readonly<Record<WireName, (image: Buffer, type?: string) => unknown>> = {
  responses: (image, type = 'image/png') => ({
    type: 'input_image',
    detail: 'auto',
    image_url: `data:${type};base64,${base64(image)}`,
  }),
  chat: (image, type = 'image/png') => ({
    type: 'image_url',
    image_url: { url: `data:${type};base64,${base64(image)}` },
  }),
  anthropic: (image, type = 'image/png') => ({
    type: 'image',
    source: { type: 'base64', media_type: type, data: base64(image) },
  }),
  google: (image, type = 'image/png') => ({
    inlineData: { mimeType: type, data: base64(image) },
  }),
};

const firstParts = (wire: WireName, { body }: SeenRequest): readonly unknown[] => {
  const key = { responses: 'input', chat: 'messages', anthropic: 'messages', google: 'contents' };
  const all = body[key[wire]] as readonly Record<string, readonly unknown[]>[];
  const first = all.find(({ role }) => String(role) === 'user');
  return first?.[wire === 'google' ? 'parts' : 'content'] ?? [];
};

test.each(wires)('%s: the model sees what a person attached, before the task', async (wire) => {
  const images = [png(1), jpeg];
  const { provider, running, id, run } = await open(wire, () => finish, images);

  await run();
  await untilStatus(running, id, 'complete');

  const [seen] = provider.requests;
  const [one, other, text] = seen === undefined ? [] : firstParts(wire, seen);
  expect(one).toEqual(shown[wire](png(1)));
  expect(other).toEqual(shown[wire](jpeg, 'image/jpeg'));
  expect(JSON.stringify(text)).toContain(
    'A person attached 2 images, above in this order: shot-0.png, shot-1.png.',
  );
  const journal = journalOf(running, id);
  expect(journal).toContain((await running.service.status(id)).attachments?.[0]?.digest);
  for (const image of images) expect(journal).not.toContain(base64(image));
});

test.each(wires)('%s: read shows an image, also after a crash', async (wire) => {
  const screen = png(9);
  let crashed = false;
  const { provider, running, setting, id, root, run } = await open(wire, (number) => {
    if (number === 1) return callOf('read', { path: 'shots/a.png' });
    return crashed ? finish : { kind: 'silence' };
  });
  mkdirSync(join(root, 'shots'));
  writeFileSync(join(root, 'shots', 'a.png'), screen);
  await run();
  await vi.waitFor(() => expect(provider.requests).toHaveLength(2));
  // The file is another one by now; the model goes on with what it has seen.
  writeFileSync(join(root, 'shots', 'a.png'), png(10));
  crashed = true;

  const next = await startSystem(await crash(running, setting));
  await untilStatus(next, id, 'complete');

  const [, before, after] = provider.requests.map(({ body }) => JSON.stringify(body));
  expect(before).toContain(base64(screen));
  expect(after).toBe(before);
  expect(journalOf(next, id)).not.toContain(base64(screen));
  expect(next.store.images.attached(id)).toHaveLength(1);
});

test.each(wires)('%s: each request begins with the one before', async (wire) => {
  const { provider, running, id, root, run } = await open(wire, (number) =>
    number > 4 ? finish : callOf('read', { path: number === 2 ? 'a.png' : 'a.txt' }, `c${number}`),
  );
  writeFileSync(join(root, 'a.png'), png(9));
  writeFileSync(join(root, 'a.txt'), 'text');

  await run();
  await untilStatus(running, id, 'complete');

  const key = { responses: 'input', chat: 'messages', anthropic: 'messages', google: 'contents' };
  const conversations = provider.requests.map(({ body }) =>
    // Where a cache is to keep what it read moves on; it is no part of what is read.
    (body[key[wire]] as readonly unknown[]).map((message) =>
      JSON.stringify(message).replaceAll(',"cache_control":{"type":"ephemeral"}', ''),
    ),
  );
  for (const [at, conversation] of conversations.slice(1).entries())
    expect(conversation.slice(0, conversations[at]?.length)).toEqual(conversations[at]);
});

const refusals: readonly (readonly [WireName, number, object])[] = [
  [
    'chat',
    400,
    {
      error: {
        message: 'Invalid content type. image_url is only supported by certain models.',
        type: 'invalid_request_error',
      },
    },
  ],
  ['chat', 404, { error: { message: 'No endpoints found that support image input', code: 404 } }],
  ['chat', 500, { error: { message: 'image input is not supported - hint: mmproj' } }],
  ['responses', 400, { error: { message: 'This model does not support image inputs.' } }],
  [
    'anthropic',
    400,
    { type: 'error', error: { type: 'invalid_request_error', message: 'Could not process image' } },
  ],
  [
    'google',
    400,
    { error: { code: 400, message: 'Unable to process input image.', status: 'INVALID_ARGUMENT' } },
  ],
];

test.each(refusals)(
  '%s: a model that refuses images (%i) goes on without them, and is told so',
  async (wire, status, body) => {
    const image = png();
    const { provider, running, id, run } = await open(wire, (number, seen) =>
      JSON.stringify(seen.body).includes(base64(image))
        ? { kind: 'status', status, body }
        : number < 4
          ? callOf('find', { pattern: '*' })
          : finish,
    );

    await run();
    await untilStatus(running, id, 'complete');

    const [refused, ...others] = provider.requests.map((seen) => JSON.stringify(seen.body));
    expect(refused).toContain(base64(image));
    expect(others.length).toBeGreaterThan(1);
    for (const other of others) {
      expect(other).not.toContain(base64(image));
      expect(other).toContain('an image that could not be shown to you');
    }
    const journal = journalOf(running, id);
    expect(journal).toContain(
      'the model takes no images, so it goes on without them: the provider',
    );
    expect(running.store.images.attached(id)).toHaveLength(1);
  },
);

test('another refusal of a request with images is no reason to leave them out', async () => {
  const { provider, running, id, run } = await open('chat', () => ({
    kind: 'status',
    status: 400,
    body: { error: { message: 'the temperature is too high' } },
  }));

  await run();
  await untilStatus(running, id, 'failed');

  expect(provider.requests).toHaveLength(1);
});

test('an attempt reads as many images as it may, and they go with it', async () => {
  const { provider, running, id, root, run } = await open(
    'chat',
    (number) =>
      number === 10 ? finish : callOf('read', { path: `${number}.png` }, `call_${number}`),
    [],
  );
  for (let n = 1; n <= 10; n += 1) writeFileSync(join(root, `${n}.png`), png(n));

  await run();
  await untilStatus(running, id, 'complete');

  const last = JSON.stringify(provider.requests.at(-1)?.body);
  expect(last).toContain(base64(png(8)));
  expect(last).not.toContain(base64(png(9)));
  expect(last).toContain('you have seen as many as an attempt may read (8, ');
  expect(running.store.images.find(id, (await running.service.upload(png(8))).digest)).toBeNull();
});

test('a file that only looks like an image by its name is read as what it is', async () => {
  const { provider, running, id, root, run } = await open(
    'chat',
    (number) => (number === 1 ? callOf('read', { path: 'a.png' }) : finish),
    [],
  );
  writeFileSync(join(root, 'a.png'), 'plain text');

  await run();
  await untilStatus(running, id, 'complete');

  expect(JSON.stringify(provider.requests[1]?.body)).toContain('plain text');
});

test('the images of a task go with it, and with its history', async () => {
  const { running, id } = await open('chat', () => finish);
  const other = await attach(running, [png(2)]);

  await running.service.delete(id);
  expect(running.store.images.attached(id)).toEqual([]);
  expect(running.store.images.attached(other.task_id)).toHaveLength(1);

  await running.service.close(other.task_id, null);
  const now = Date.now() + 1_000;
  await createHistories(running.ledger.db).mark(other.task_id, now, { at: now, days: 1 });
  expect(running.store.images.attached(other.task_id)).toEqual([]);
});

test('a task gets only images that were uploaded, at most eight and 10 MiB of them', async () => {
  const { running } = await open('chat', () => finish);
  const { service } = running;
  const create = async (images: readonly Buffer[]) => {
    await attach(running, images);
  };
  const unknown = { description: 'x', attachments: [{ digest: '0'.repeat(64), name: 'x' }] };
  const before = (await service.list({})).tasks.length;
  const big = 4 * 1024 * 1024;

  await expect(service.create(unknown)).rejects.toThrow(
    'attachments.0.digest: is no uploaded image',
  );
  await expect(create(Array.from({ length: 9 }, (_, n) => png(n)))).rejects.toThrow('at most 8');
  await expect(create([1, 2, 3].map((grey) => png(grey, { padding: big })))).rejects.toThrow(
    'more than the 10485760 of a task',
  );
  await expect(service.upload(Buffer.from('text'))).rejects.toThrow('is no PNG, JPEG or WebP');
  expect((await service.list({})).tasks).toHaveLength(before);
});
