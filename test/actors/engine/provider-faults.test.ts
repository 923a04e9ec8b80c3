import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import type { Timeouts } from '../../../src/actors/model/watchdog.ts';
import { type Answer, type SeenRequest, startModelServer } from '../../support/model-server.ts';
import { type Setting, startSystem, untilStatus } from '../../support/running.ts';

/**
 * What becomes of a task when its provider fails: each fault once through the whole system, over
 * real sockets.
 */

/**
 * For the faults that only time tells; the others get the usual limits, so that a busy machine is
 * no fault.
 */
const short: Partial<Timeouts> = {
  connectMs: 2_000,
  firstByteMs: 2_000,
  idleMs: 2_000,
  progressMs: 3_000,
};
const toldByTime: ReadonlySet<string> = new Set(['F6', 'F7', 'F8', 'F9']);
const finished: Answer = {
  kind: 'answer',
  calls: [{ name: 'finish', arguments: '{"status":"done","summary":"well"}' }],
};
const status = (code: number, error: object = { message: 'x' }, headers = {}): Answer => ({
  kind: 'status',
  status: code,
  headers,
  body: { error },
});

interface Fault {
  readonly id: string;
  readonly what: string;
  readonly answer: Answer;
  /** What the task says when the provider stays like this. */
  readonly says: RegExp;
  /** Whether another call is worth its price. */
  readonly passes: boolean;
}

const faults: readonly Fault[] = [
  { id: 'F1', what: 'a 500', answer: status(500), says: /answered 500/, passes: true },
  { id: 'F1', what: 'a 502', answer: status(502), says: /answered 502/, passes: true },
  { id: 'F1', what: 'a 503', answer: status(503), says: /answered 503/, passes: true },
  { id: 'F1', what: 'a 529', answer: status(529), says: /answered 529/, passes: true },
  {
    id: 'F2',
    what: 'a busy provider',
    answer: status(429, {}, { 'retry-after': '1' }),
    says: /answered 429/,
    passes: true,
  },
  {
    id: 'F4',
    what: 'a pause below nothing',
    answer: status(429, {}, { 'retry-after': '-5' }),
    says: /429/,
    passes: true,
  },
  {
    id: 'F5',
    what: 'an empty quota',
    answer: status(429, { message: 'x', code: 'insufficient_quota' }),
    says: /quota of the provider account is used up/,
    passes: false,
  },
  {
    id: 'F6',
    what: 'no headers',
    answer: { kind: 'silence' },
    says: /did not answer/,
    passes: true,
  },
  {
    id: 'F7',
    what: 'no first byte',
    answer: { kind: 'headers_only' },
    says: /headers and then nothing/,
    passes: true,
  },
  {
    id: 'F8',
    what: 'a stall',
    answer: { kind: 'stall' },
    says: /fell silent in mid-answer/,
    passes: true,
  },
  {
    id: 'F9',
    what: 'comments only',
    answer: { kind: 'comments_only' },
    says: /nothing of the answer/,
    passes: true,
  },
  {
    id: 'F11',
    what: 'a reset',
    answer: { kind: 'reset' },
    says: /connection .* broke in mid-answer/,
    passes: true,
  },
  {
    id: 'F12',
    what: 'a clean end',
    answer: { kind: 'cut' },
    says: /ended before it was finished/,
    passes: true,
  },
  {
    id: 'F13',
    what: 'an event cut in two',
    answer: { kind: 'half_event' },
    says: /ended before it was/,
    passes: true,
  },
  { id: 'F14', what: 'bad JSON', answer: { kind: 'bad_json' }, says: /not JSON/, passes: true },
  {
    id: 'F15',
    what: 'an error inside',
    answer: { kind: 'error_event' },
    says: /overloaded/,
    passes: true,
  },
  {
    id: 'F15',
    what: 'a refusal inside',
    answer: { kind: 'error_event', error: { message: 'no', type: 'invalid_request_error' } },
    says: /reported an error: no/,
    passes: false,
  },
  { id: 'F16', what: 'a web page', answer: { kind: 'html' }, says: /text\/html/, passes: true },
  {
    id: 'F16',
    what: 'nothing at all',
    answer: { kind: 'empty' },
    says: /answer was empty/,
    passes: true,
  },
  {
    id: 'F20',
    what: 'too long a context',
    answer: status(400, { message: 'x', code: 'context_length_exceeded' }),
    says: /longer than the model's context/,
    passes: false,
  },
];

const open = async (
  answer: (request: SeenRequest) => Answer,
  setting: Setting = {},
  timeouts: Partial<Timeouts> = {},
) => {
  const provider = await startModelServer(answer);
  const model = createOpenAiChatModel({
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
    timeouts,
  });
  const running = await startSystem({ model, ...setting });
  const begin = async (description: string, options = {}) => {
    const { task_id } = await running.service.create({ description });
    await running.service.execute({ task: task_id, role: 'engineer', options });
    return task_id;
  };
  return { ...running, running, provider, begin };
};

interface End {
  readonly view: TaskView;
  readonly calls: readonly { readonly at: number; readonly body: string }[];
  readonly results: string;
}
interface Ends {
  readonly stays: End | undefined;
  readonly passes: End | undefined;
}

/**
 * Faults at once on one server: what each asked of the provider, when, and what became of its task.
 */
const play = async (faults: readonly Fault[], timeouts: Partial<Timeouts>) => {
  const calls = new Map<string, { at: number; body: string }[]>();
  const taskOf = (fault: Fault, kind: string): string => `${fault.id} ${fault.what}, ${kind}.`;
  const { begin, running, root } = await open(
    ({ body }) => {
      const text = JSON.stringify(body);
      const asked = faults.flatMap((fault) => ['stays', 'passes'].map((kind) => ({ fault, kind })));
      const found = asked.find(({ fault, kind }) => text.includes(taskOf(fault, kind)));
      if (found === undefined) throw new Error('a call of no task');
      const key = taskOf(found.fault, found.kind);
      const before = calls.get(key) ?? [];
      calls.set(key, [...before, { at: Date.now(), body: text }]);
      return found.kind === 'passes' && before.length > 0 ? finished : found.fault.answer;
    },
    // `parked.test.ts` has what comes of a quota by default.
    { options: { cap: 99, maxModelRetries: 1, onQuota: 'fail' } },
    timeouts,
  );
  const end = async (key: string): Promise<End> => {
    const id = await begin(key);
    const view = await untilStatus(running, id, 'complete', 'failed');
    const results = join(root, '.beads', 'tasks', `task-${id}`, '30-results.md');
    return {
      view,
      calls: calls.get(key) ?? [],
      results: existsSync(results) ? readFileSync(results, 'utf8') : '',
    };
  };
  const played = new Map<Fault, Ends>();
  await Promise.all(
    faults.map(async (fault) => {
      const ends = [
        end(taskOf(fault, 'stays')),
        ...(fault.passes ? [end(taskOf(fault, 'passes'))] : []),
      ];
      const [stays, passes] = await Promise.all(ends);
      played.set(fault, { stays, passes });
    }),
  );
  return played;
};
const playAll = async (): Promise<ReadonlyMap<Fault, Ends>> => {
  const others = await play(
    faults.filter(({ id }) => !toldByTime.has(id)),
    {},
  );
  const slow = await play(
    faults.filter(({ id }) => toldByTime.has(id)),
    short,
  );
  return new Map([...others, ...slow]);
};
let playing: ReturnType<typeof playAll> | undefined;

test.each(faults.map((fault) => [fault.id, fault.what, fault] as const))(
  '%s %s: the task says so, or it passes and the task completes',
  { tags: ['slow'] },
  async (id, _, fault) => {
    const { says, passes } = fault;
    playing ??= playAll();

    const outcome = (await playing).get(fault);

    const pauses = (outcome?.passes?.calls ?? [])
      .map(({ at }, n, all) => at - (all[n - 1]?.at ?? at))
      .slice(1);
    expect(outcome?.stays?.view).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'model_failed', message: expect.stringMatching(says) },
    });
    expect(outcome?.stays?.calls).toHaveLength(passes ? 2 : 1);
    if (!passes) return;
    expect(outcome?.passes).toMatchObject({
      view: { status: 'complete', attempt: 1, result: 'well' },
    });
    // What had come of the broken answer is neither shown as a result nor told to the model.
    for (const text of [outcome?.passes?.results, outcome?.passes?.calls.at(-1)?.body])
      expect(text).not.toMatch(/\bhalf\b/);
    expect(pauses).toEqual([expect.toSatisfy((ms: number) => ms >= (id === 'F4' ? 495 : 995))]);
  },
);

test('F3 a provider that wants to be left alone for an hour is: the task waits without a slot, and says until when', async () => {
  const { begin, service, system, provider } = await open(
    () => status(429, {}, { 'retry-after': '3600' }),
    {
      options: { maxModelRetries: 3, maxRetries: 1 },
    },
  );
  const id = await begin('a task');

  await vi.waitFor(async () => expect((await service.status(id)).phase).toBe('backing_off'));

  const { deadline } = await service.explain(id);
  expect(Date.parse(deadline ?? '') - Date.now()).toBeGreaterThan(3_590_000);
  expect(system.slotUse()).toMatchObject({ running: 0, waiting: 0 });
  expect(provider.requests).toHaveLength(1);
  expect((await service.cancel(id, null)).status).toBe('cancelled');
});

test('F10 a provider that is gone without a word is given up, also in the middle of a task', async () => {
  const { begin, running } = await open(
    ({ body }) =>
      JSON.stringify(body).includes('"tool"')
        ? { kind: 'stall' }
        : { kind: 'answer', calls: [look] },
    {},
    { idleMs: 2_000 },
  );
  const look = { name: 'find', arguments: '{"pattern":"*"}' };

  const view = await untilStatus(running, await begin('a task'), 'failed');

  expect(view).toMatchObject({
    error: { facts: { kind: 'timeout_idle' } },
    usage: { turns: 1, tool_calls: 1 },
  });
});

const cut: Answer = {
  kind: 'answer',
  text: 'I make it now',
  calls: [{ name: 'bash', arguments: '{"command":"touch cut"}' }],
  finish: 'length',
};
const silent: Answer = { kind: 'answer', text: 'hm' };

test.each([
  ['twice', [cut, cut, finished], 'complete'],
  ['twice, and later twice again', [cut, cut, silent, cut, cut, finished], 'complete'],
  ['three times in a row', [cut, cut, cut, finished], 'failed'],
])('F17 a call cut at the token limit is never made: %s', async (_, answers, end) => {
  let asked = 0;
  const { begin, running, provider, root } = await open(() => {
    asked += 1;
    return answers[asked - 1] ?? finished;
  });

  const view = await untilStatus(running, await begin('a task'), 'complete', 'failed');

  const told = JSON.stringify(provider.requests[1]?.body);
  expect(view.status).toBe(end);
  expect(view.error?.code).toBe(end === 'failed' ? 'output_truncated' : undefined);
  expect(provider.requests).toHaveLength(end === 'failed' ? 3 : answers.length);
  expect(told).toContain('Your answer was cut at its limit of length');
  expect(told).toContain('I make it now');
  expect(told).not.toContain('touch cut');
  expect(existsSync(join(root, 'cut'))).toBe(false);
});

test('F18 a call that we end ourselves in mid-answer is never success: cancelled, or the limit by name', async () => {
  const { begin, running, service, provider } = await open(
    () => ({ kind: 'stall' }),
    {},
    { idleMs: 60_000 },
  );
  const [cancelled, limited] = [await begin('one'), await begin('other', { timeoutMs: 3_000 })];
  await vi.waitFor(() => expect(provider.requests).toHaveLength(2));

  const [one, other] = [
    await service.cancel(cancelled, null),
    await untilStatus(running, limited, 'failed'),
  ];

  expect(one).toMatchObject({ status: 'cancelled', attempt: 1 });
  expect(one.result).toBeUndefined();
  expect(other.error).toMatchObject({ code: 'timed_out' });
});

test('F19 an answer that says its end counts at once, though its socket stays open', async () => {
  const { begin, running } = await open(
    () => ({ ...finished, hold: true }) as Answer,
    {},
    { idleMs: 60_000 },
  );

  expect(await untilStatus(running, await begin('a task'), 'complete', 'failed')).toMatchObject({
    result: 'well',
  });
});
