import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { expect, test, vi } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { crash } from '../../support/crash.ts';
import {
  type Answer,
  type ModelServer,
  type SeenRequest,
  startModelServer,
} from '../../support/model-server.ts';
import { type Running, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/**
 * A conversation that grows too long, through the whole system and the real client, over real
 * sockets (ADR 0016).
 */

const protocols = ['chat', 'responses'] as const;
type Protocol = (typeof protocols)[number];
type Item = Readonly<Record<string, unknown>>;

const usage = (tokens: number) => ({ prompt_tokens: tokens, completion_tokens: 5 });
const calling = (name: string, args: object, tokens: number, id: string): Answer => ({
  kind: 'answer',
  text: `I use ${name}.`,
  calls: [{ id, name, arguments: JSON.stringify(args) }],
  usage: usage(tokens),
});
const read = (number: number, tokens = 100): Answer =>
  calling('read', { path: `${number}.txt` }, tokens, `call_${number}`);
const finish = (tokens = 100): Answer =>
  calling('finish', { status: 'done', summary: 'all of it' }, tokens, 'call_end');
const summary = (text = 'I have read much.'): Answer => ({
  kind: 'answer',
  text,
  usage: usage(300),
});
const tooLong = (error: object = { message: 'x', code: 'context_length_exceeded' }): Answer => ({
  kind: 'status',
  status: 400,
  body: { error },
});

const isSummaryRequest = ({ body }: SeenRequest): boolean => body['tool_choice'] === 'none';
const isFor = (step: string) => (seen: SeenRequest) =>
  String(seen.headers['idempotency-key']).endsWith(`/${step}`);

/** The conversation as it went over the wire, in the order in which the provider reads it. */
const wordsOf = ({ body }: SeenRequest): readonly Item[] => {
  const said = (body['messages'] ?? body['input']) as readonly Item[];
  return body['instructions'] === undefined
    ? said
    : [{ instructions: body['instructions'] }, ...said];
};
const textOf = ({ content, output }: Item): string => JSON.stringify(content ?? output);

/** The ids of the calls in a request, and of the results. */
const idsIn = (request: SeenRequest) => {
  const items = wordsOf(request);
  const nested = items
    .flatMap((item) => (item['tool_calls'] ?? []) as readonly Item[])
    .map(({ id }) => id);
  const flat = items.filter(({ type }) => type === 'function_call').map((item) => item['call_id']);
  const results = items.map(
    (item) => item['tool_call_id'] ?? (item['output'] === undefined ? undefined : item['call_id']),
  );
  return { calls: [...nested, ...flat], results: results.filter((id) => id !== undefined) };
};

const beginsWith = (longer: SeenRequest, shorter: readonly Item[]): void =>
  expect(JSON.stringify(wordsOf(longer).slice(0, shorter.length))).toBe(JSON.stringify(shorter));

const open = async (
  answer: (seen: SeenRequest, number: number) => Answer,
  protocol: Protocol,
  more: Setting = {},
) => {
  const provider = await startModelServer(answer);
  const root = temporaryFolder();
  for (const number of [1, 2, 3, 4, 5, 6])
    writeFileSync(join(root, `${number}.txt`), `${number}`.repeat(600));
  const model = createOpenAiModel({
    protocol,
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
  });
  const setting: Setting = {
    model,
    root,
    ...more,
    options: { contextWindow: 1_000, ...more.options },
  };
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'read all of it' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { provider, running, setting, id };
};

const framesOf = ({ store }: Running, id: string) =>
  store
    .read({ taskId: id, after: 0, limit: 5_000 })
    .map(({ type, data }) => ({ type, ...JSON.parse(data) }));

/**
 * That each request holds what was asked before it, word for word, but for the first after a
 * compaction.
 */
const judgePrefixes = ({ requests }: ModelServer): void => {
  for (const [index, request] of requests.entries()) {
    const { calls, results } = idsIn(request);
    expect(results, 'no result without its call, no call without its result').toEqual(calls);
    const before = requests[index - 1];
    if (before === undefined || isSummaryRequest(before) || isSummaryRequest(request)) continue;
    beginsWith(request, wordsOf(before));
  }
  const [system, tools] = [
    new Set(requests.map((each) => JSON.stringify(wordsOf(each)[0]))),
    new Set(requests.map(({ body }) => JSON.stringify(body['tools']))),
  ];
  expect([system.size, tools.size]).toEqual([1, 1]);
};

test.each(protocols)(
  'near the window the older part is replaced by a summary, over %s',
  async (protocol) => {
    let turn = 0;
    const { provider, running, id } = await open((seen) => {
      if (isSummaryRequest(seen)) return summary();
      turn += 1;
      return turn < 5 ? read(turn, turn === 3 ? 800 : 100) : finish();
    }, protocol);

    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view).toMatchObject({
      status: 'complete',
      attempt: 1,
      usage: { turns: 5, model_calls: 6, input_tokens: 1_500, output_tokens: 30 },
    });
    const place = provider.requests.findIndex(isSummaryRequest);
    expect(place).toBe(3);
    const [before, asked, after] = provider.requests.slice(2, 5) as [
      SeenRequest,
      SeenRequest,
      SeenRequest,
    ];
    // What is summarised is what the model has read already, to the byte, and one more message.
    beginsWith(before, wordsOf(asked).slice(0, -1));
    expect(textOf(wordsOf(asked).at(-1) as Item)).toContain(
      'Its beginning, up to here, will be replaced',
    );
    // The task, the summary, the last turn whole.
    expect(wordsOf(after).slice(0, 2)).toEqual(wordsOf(before).slice(0, 2));
    expect(textOf(wordsOf(after)[2] as Item)).toContain('I have read much.');
    expect(idsIn(after)).toEqual({ calls: ['call_3'], results: ['call_3'] });
    expect(JSON.stringify(wordsOf(after))).toContain('3'.repeat(600));
    expect(JSON.stringify(wordsOf(after))).not.toContain('1'.repeat(600));
    judgePrefixes(provider);
    const frames = framesOf(running, id);
    expect(
      frames.filter(
        ({ type, purpose }) => type === 'api_call_complete' && purpose === 'compaction',
      ),
    ).toHaveLength(1);
    expect(
      frames
        .filter(({ type }) => type === 'text_delta')
        .map(({ text }) => text)
        .join(''),
    ).not.toContain('I have read');
    expect(frames).toContainEqual(
      expect.objectContaining({ type: 'log', message: expect.stringContaining('grew too long') }),
    );
  },
);

test.each(protocols)(
  'a conversation that the provider calls too long is compacted and asked again, over %s',
  async (protocol) => {
    let refused = 0;
    const { provider, running, id } = await open(
      (seen, number) => {
        if (isSummaryRequest(seen)) return summary();
        if (number < 4) return read(number);
        refused += 1;
        return refused === 1 ? tooLong() : finish();
      },
      protocol,
      { options: { contextWindow: null } },
    );

    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view).toMatchObject({ status: 'complete', usage: { turns: 4, model_calls: 6 } });
    expect(provider.requests.map(isSummaryRequest)).toEqual([
      false,
      false,
      false,
      false,
      true,
      false,
    ]);
    expect(provider.requests.slice(3).map(({ headers }) => headers['idempotency-key'])).toEqual(
      ['think:4', 'compact:4', 'think:4:compacted'].map((step) =>
        expect.stringMatching(`^${id}#1/[\\w-]{43}/${step}$`),
      ),
    );
    judgePrefixes(provider);
  },
);

test.each([
  [
    'vLLM',
    {
      message:
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
      type: 'BadRequestError',
    },
  ],
  [
    'llama.cpp',
    {
      message: 'the request exceeds the available context size',
      type: 'exceed_context_size_error',
      code: 400,
    },
  ],
  [
    'LiteLLM',
    {
      message: 'litellm.ContextWindowExceededError: BedrockException: Input is too long',
      code: '400',
    },
  ],
])('as %s says it, too', async (_, error) => {
  const { provider, running, id } = await open(
    (seen, number) =>
      isSummaryRequest(seen)
        ? summary()
        : number < 3
          ? read(number)
          : number === 3
            ? tooLong(error)
            : finish(),
    'chat',
  );

  expect((await untilStatus(running, id, 'complete', 'failed')).status).toBe('complete');
  expect(provider.requests.filter(isSummaryRequest)).toHaveLength(1);
});

test('a conversation that is too long also after it was compacted ends the attempt, and says so', async () => {
  const { provider, running, id } = await open(
    (seen, number) => (isSummaryRequest(seen) ? summary() : number < 3 ? read(number) : tooLong()),
    'chat',
    { options: { maxModelRetries: 3 } },
  );

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({
    status: 'failed',
    error: {
      code: 'model_failed',
      message: expect.stringMatching(/longer than the model's context, also after/),
      facts: { kind: 'context_overflow', compacted: true, context_window: 1_000 },
    },
    usage: { turns: 2, model_calls: 5 },
  });
  expect(provider.requests).toHaveLength(5);
});

test('a model that counts as much after the summary as before ends the attempt instead of summarising for ever', async () => {
  const { provider, running, id } = await open(
    (seen, number) => (isSummaryRequest(seen) ? summary() : read(number, 900)),
    'chat',
  );

  expect((await untilStatus(running, id, 'failed')).error).toMatchObject({
    facts: { kind: 'context_overflow' },
  });
  expect(provider.requests.filter(isSummaryRequest).length).toBeLessThanOrEqual(1);
});

test('a task that is longer than the model reads fails at once, for there is nothing to leave out', async () => {
  const { provider, running, id } = await open(() => tooLong(), 'chat');

  const { error } = await untilStatus(running, id, 'failed');

  expect(error).toMatchObject({
    message: expect.stringContaining('the task alone is longer'),
    facts: { kind: 'context_overflow' },
  });
  expect(provider.requests).toHaveLength(1);
});

test('a turn that is too long by itself is kept with its results cut, without a summary of nothing', async () => {
  const { provider, running, id } = await open((_, number) => {
    if (number === 1)
      return calling('bash', { command: 'yes 0123456789 | head -c 9000' }, 100, 'call_1');
    return number === 2 ? tooLong() : finish();
  }, 'chat');

  expect(await untilStatus(running, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    usage: { model_calls: 3 },
  });
  const [before, after] = provider.requests.slice(1) as [SeenRequest, SeenRequest];
  expect(idsIn(after)).toEqual({ calls: ['call_1'], results: ['call_1'] });
  expect([wordsOf(before).length, wordsOf(after).length]).toEqual([4, 4]);
  expect(textOf(wordsOf(after).at(-1) as Item)).toMatch(/bytes left out here.*\[exit code 0\]/);
  expect(JSON.stringify(wordsOf(after)).length).toBeLessThan(
    JSON.stringify(wordsOf(before)).length / 3,
  );
});

test.each([
  ['says nothing', summary('')],
  ['is cut off', { ...summary('half'), finish: 'length' } as Answer],
])('a summary that %s is asked for again, then ends the attempt by name', async (_, given) => {
  const { provider, running, id } = await open(
    (seen, number) => (isSummaryRequest(seen) ? given : read(number, number === 2 ? 900 : 100)),
    'chat',
    { options: { maxModelRetries: 1 } },
  );

  const { error, usage: used } = await untilStatus(running, id, 'failed');

  expect(error).toMatchObject({ code: 'model_failed', facts: { kind: 'no_summary' } });
  expect(provider.requests.filter(isSummaryRequest)).toHaveLength(2);
  expect(used).toMatchObject({ turns: 2, model_calls: 4, input_tokens: 1_600 });
});

test('words of a person from before the turn that did not fit are still said after it', async () => {
  let refused = false;
  const { provider, running, id } = await open((seen, number) => {
    if (isSummaryRequest(seen)) return summary();
    if (number < 3) return read(number);
    if (number === 3) return calling('ask', { question: 'left or right?' }, 100, 'call_ask');
    if (refused) return finish();
    refused = true;
    return tooLong();
  }, 'chat');
  const asked = await vi.waitFor(async () => {
    const { awaiting } = await running.service.status(id);
    expect(awaiting).toBeDefined();
    return awaiting;
  });
  await running.service.respond(id, 1, {
    type: 'respond',
    inputId: asked?.input_id ?? '',
    text: 'right, please',
    decision: null,
  });

  await untilStatus(running, id, 'complete');

  const last = provider.requests.at(-1) as SeenRequest;
  expect(JSON.stringify(wordsOf(last)).split('right, please')).toHaveLength(2);
  expect(textOf(wordsOf(last).at(-1) as Item)).toContain('right, please');
});

const silence: Answer = { kind: 'silence' };

test.each(protocols)(
  'a crash while the summary is made asks for it again with the same words, over %s',
  async (protocol) => {
    let crashed = false;
    const { provider, running, setting, id } = await open((seen, number) => {
      if (isSummaryRequest(seen)) return crashed ? summary() : silence;
      return number < 4 ? read(number, number === 3 ? 900 : 100) : finish();
    }, protocol);
    await vi.waitFor(() => expect(provider.requests.some(isSummaryRequest)).toBe(true));
    crashed = true;
    const next = await startSystem(await crash(running, setting));

    const view = await untilStatus(next, id, 'complete', 'failed');

    expect(view).toMatchObject({
      status: 'complete',
      attempt: 1,
      usage: { turns: 4, model_calls: 5 },
    });
    const [first, second] = provider.requests.filter(isSummaryRequest);
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
  },
);

test('a crash in the pause before the summary is asked for again does not forget that it is needed', async () => {
  let crashed = false;
  const busy: Answer = { kind: 'status', status: 429, headers: { 'retry-after': '1' } };
  const { provider, running, setting, id } = await open(
    (seen, number) => {
      if (isSummaryRequest(seen)) return crashed ? summary() : busy;
      return number < 4 ? read(number, number === 3 ? 900 : 100) : finish();
    },
    'chat',
    { options: { maxModelRetries: 2 } },
  );
  await vi.waitFor(async () =>
    expect((await running.service.status(id)).phase).toBe('backing_off'),
  );
  crashed = true;
  const next = await startSystem(await crash(running, setting));

  const view = await untilStatus(next, id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', usage: { turns: 4, model_calls: 6 } });
  expect(provider.requests.map(isSummaryRequest)).toEqual([false, false, false, true, true, false]);
});

test.each([
  ['before the window was full', null],
  ['when the provider refused', 4],
])('a crash after a compaction %s rebuilds the conversation to the byte', async (_, refusedAt) => {
  let crashed = false;
  const { provider, running, setting, id } = await open((seen, number) => {
    if (isSummaryRequest(seen)) return summary();
    if (number === refusedAt) return tooLong();
    const compacted = provider.requests.some(isSummaryRequest);
    if (!compacted) return read(number, number === 3 && refusedAt === null ? 900 : 100);
    if (isFor('think:5')(seen)) return crashed ? finish() : silence;
    return read(5);
  }, 'chat');
  await vi.waitFor(() => expect(provider.requests.some(isFor('think:5'))).toBe(true));
  crashed = true;
  const next = await startSystem(await crash(running, setting));

  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    usage: { turns: 5 },
  });
  const [before, after] = provider.requests.filter(isFor('think:5'));
  expect(JSON.stringify(after?.body)).toBe(JSON.stringify(before?.body));
  expect(provider.requests.filter(isSummaryRequest)).toHaveLength(1);
});

test('a summary that was kept just before a crash is taken after it, and not made again', async () => {
  let held = true;
  const { provider, running, setting, id } = await open((seen, number) => {
    if (isSummaryRequest(seen)) return summary();
    if (isFor('think:4:compacted')(seen)) return held ? silence : finish();
    return read(number, number === 3 ? 900 : 100);
  }, 'chat');
  await vi.waitFor(() => expect(provider.requests.some(isFor('think:4:compacted'))).toBe(true));
  held = false;
  const image = await crash(running, { ...setting, tampered: true });
  // As if the chart had not come to hear of it.
  const db = new Database(join(image.stateDir, 'journal.db'));
  const [row] = db.prepare('select snapshot from actors where id = ?').all(`${id}#1`) as {
    snapshot: string;
  }[];
  const snapshot = JSON.parse(row?.snapshot ?? '{}');
  snapshot.value = 'compacting';
  Object.assign(snapshot.context, { conversationTokens: 900, compactedFor: 0 });
  snapshot.context.usage.model_calls -= 1;
  snapshot.context.usage.input_tokens -= 300;
  db.prepare('update actors set snapshot = ? where id = ?').run(
    JSON.stringify(snapshot),
    `${id}#1`,
  );
  db.close();
  const next = await startSystem(image);

  const view = await untilStatus(next, id, 'complete', 'failed');

  const [before, after] = provider.requests.filter(isFor('think:4:compacted'));
  expect(after?.body).toEqual(before?.body);
  expect(provider.requests.filter(isSummaryRequest)).toHaveLength(1);
  expect(view).toMatchObject({
    status: 'complete',
    usage: { turns: 4, model_calls: 5, input_tokens: 1_500 },
  });
});
