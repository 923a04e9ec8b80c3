import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import Database from 'libsql';
import { expect, test, vi } from 'vitest';
import type { OnInterrupted } from '../../../src/actors/agent/tool-calls.ts';
import type { Model, ModelEvent, ModelRequest } from '../../../src/actors/model/port.ts';
import { StoreError } from '../../../src/actors/store/port.ts';
import { createSharedWorkspace } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import type { Acceptance } from '../../../src/machines/task/task-context.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { crash } from '../../support/crash.ts';
import { embeddedAt, writingItself } from '../../support/ledger.ts';
import {
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const bash = (command: string): Turn => ({ calls: [{ tool: 'bash', arguments: { command } }] });
const write = (path: string, content: string) => ({ tool: 'write', arguments: { path, content } });
/** A call that leaves a mark each time it is made, and ends only when it is killed. */
const marked = bash('echo made >> marks; exec sleep 600');

/** A model that plays these turns, and keeps what it was asked. */
const watched = (turns: readonly Turn[], requests: ModelRequest[]): Model => ({
  name: 'watched',
  disclaimer: null,
  async *ask(request): AsyncGenerator<ModelEvent> {
    const turn = request.messages.filter(({ role }) => role === 'assistant').length;
    requests.push({ ...request, messages: [...request.messages] });
    const calls = (turns[turn] ?? finish('the end')).calls.map(
      ({ tool, arguments: args }, index) => ({
        id: `call_${turn}_${index}`,
        tool,
        arguments: JSON.stringify(args),
      }),
    );
    const usage = { inputTokens: 10, outputTokens: 1, cachedTokens: 0 };
    yield { type: 'answered', text: `turn ${turn}`, calls, truncated: false, usage };
  },
});

const open = async (
  turns: readonly Turn[],
  options: Setting['options'] = {},
  more: Setting = {},
) => {
  const requests: ModelRequest[] = [];
  const setting: Setting = { model: watched(turns, requests), options, ...more };
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: 'a task' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  return { first, id, requests, setting };
};

const openJournal = (stateDir: string) => new Database(join(stateDir, 'journal.db'));

/** Whole lines: the file is there before its first line is. */
const marks = (root: string) =>
  existsSync(join(root, 'marks'))
    ? readFileSync(join(root, 'marks'), 'utf8').split('\n').length - 1
    : 0;

const untilMarked = ({ root }: Running) => vi.waitFor(() => expect(marks(root)).toBe(1));

const untilAsked = ({ service }: Running, id: string) =>
  vi.waitFor(async () => {
    const { awaiting } = await service.status(id);
    expect(awaiting).toBeDefined();
    return awaiting as NonNullable<typeof awaiting>;
  });

const respond = (
  { service }: Running,
  id: string,
  inputId: string,
  text: string | null,
  decision: 'deny' | null = null,
) => service.respond(id, 1, { type: 'respond', inputId, text, decision });

test('a tracker that is away when a server starts is not asked about every task that is at work', async () => {
  const { first, id, setting } = await open([marked, finish()]);
  await untilMarked(first);
  let finds = 0;
  const away = new Error('the tracker is away');
  const tracker: Setting['tracker'] = (root, ledger) => ({
    ...embeddedAt(root, {}, ledger),
    findMany: () => Promise.reject(away),
    page: () => Promise.reject(away),
    count: () => Promise.reject(away),
    changes: () => Promise.reject(away),
    find: () => {
      finds += 1;
      return Promise.reject(away);
    },
  });

  const next = await startSystem({ ...(await crash(first, setting)), tracker });

  expect(finds).toBe(0);
  expect(next.store.actor(id)?.pending).toBe(true);
  expect(next.logged.map(({ message }) => message)).not.toContain(
    'could not restore a pending task; the server tries again',
  );
});

test('after a crash an attempt goes on with its conversation, and what was done is not done again', async () => {
  const turns = [
    { calls: [write('one', '1'), { tool: 'read', arguments: { path: 'one' } }] },
    bash('cat one >> log; echo ran'),
    marked,
    finish('all of it'),
  ];
  const { first, id, requests, setting } = await open(turns);
  await untilMarked(first);
  const next = await startSystem(await crash(first, setting));

  const { input_id, question } = await untilAsked(next, id);
  await respond(next, id, input_id, 'the mark is there, go on');
  const view = await untilStatus(next, id, 'complete');

  expect(question).toMatch(/at work: bash .*echo made/);
  expect(view).toMatchObject({
    attempt: 1,
    result: 'all of it',
    usage: { turns: 4, model_calls: 4, input_tokens: 40 },
  });
  expect(readFileSync(join(next.root, 'log'), 'utf8')).toBe('1');
  expect(marks(next.root)).toBe(1);
  // The last question holds all that went before, once, and word for word as before the crash.
  const [before, after] = [requests[2], requests[3]];
  expect(after?.messages.slice(0, before?.messages.length)).toEqual(before?.messages);
  expect(after?.messages.slice(-2)).toMatchObject([
    {
      role: 'tool',
      ok: false,
      text: expect.stringMatching(/outcome is unknown.*A person says: the mark is there, go on/),
    },
    { role: 'user', text: expect.stringMatching(/^The server stopped in the meantime/) },
  ]);
  expect(requests.map(({ idempotencyKey }) => idempotencyKey)).toEqual(
    [1, 2, 3, 4].map((turn) => expect.stringMatching(`^${id}#1/[\\w-]{43}/think:${turn}$`)),
  );
});

test('the model is told once of each stop of the server, and its conversation keeps that', async () => {
  const { first, id, setting, requests } = await open([marked, bash('true'), marked, finish()]);
  await untilMarked(first);
  const second = await startSystem(await crash(first, setting));
  await respond(second, id, (await untilAsked(second, id)).input_id, 'go on');
  await vi.waitFor(() => expect(marks(second.root)).toBe(2));
  const third = await startSystem(await crash(second, setting));
  await respond(third, id, (await untilAsked(third, id)).input_id, 'go on');
  await untilStatus(third, id, 'complete');

  const told = requests.map(
    ({ messages }) =>
      messages.filter(({ text }) => text.startsWith('The server stopped in')).length,
  );
  expect(told).toEqual([0, 1, 1, 2]);
  expect(requests[3]?.messages.slice(0, requests[2]?.messages.length)).toEqual(
    requests[2]?.messages,
  );
});

test.each<[OnInterrupted, string | null, number]>([
  ['ask', 'repeat', 2],
  ['repeat', null, 2],
])(
  'with the policy %s and the answer %s an unclear call is made again',
  async (onInterrupted, answer, expected) => {
    const { first, id, setting } = await open([marked, finish('made')], { onInterrupted });
    await untilMarked(first);
    const image = await crash(first, setting);
    const next = await startSystem(image);
    if (answer !== null) await respond(next, id, (await untilAsked(next, id)).input_id, answer);

    await vi.waitFor(async () => {
      const { phase, error } = await next.service.status(id);
      const shown = { marks: marks(next.root), phase, error };
      expect(shown).toEqual({ marks: expected, phase: 'acting', error: undefined });
    });
  },
);

test('with the policy fail an unclear call ends the attempt by name', async () => {
  const { first, id, setting } = await open([marked], { onInterrupted: 'fail' });
  await untilMarked(first);
  const next = await startSystem(await crash(first, setting));

  expect((await untilStatus(next, id, 'failed')).error).toMatchObject({
    code: 'internal',
    facts: { interrupted: true, calls: expect.stringContaining('echo made') },
  });
  expect(marks(next.root)).toBe(1);
});

test('calls of one turn that have a result keep it, the others are made', async () => {
  const turn = { calls: [write('a', 'first'), ...marked.calls, write('b', 'last')] };
  const { first, id, setting, requests } = await open([turn, finish('both')]);
  await untilMarked(first);
  const image = await crash(first, setting);
  writeFileSync(join(image.root, 'a'), 'changed since');
  const next = await startSystem(image);

  await respond(next, id, (await untilAsked(next, id)).input_id, 'leave it');
  await untilStatus(next, id, 'complete');

  expect(readFileSync(join(next.root, 'a'), 'utf8')).toBe('changed since');
  expect(readFileSync(join(next.root, 'b'), 'utf8')).toBe('last');
  expect(requests.at(-1)?.messages.filter(({ role }) => role === 'tool')).toMatchObject([
    { callId: 'call_0_0', ok: true },
    { callId: 'call_0_1', ok: false },
    { callId: 'call_0_2', ok: true },
  ]);
});

test('a model call that was not answered is made again with the same key, one that was is not', async () => {
  const requests: ModelRequest[] = [];
  const silent: Model = {
    ...watched([], []),
    async *ask(request, signal): AsyncGenerator<ModelEvent> {
      requests.push(request);
      if (requests.length === 1) {
        const call = { id: 'c', tool: 'read', arguments: '{"path":"."}' };
        const usage = { inputTokens: 5, outputTokens: 1, cachedTokens: 0 };
        yield { type: 'answered', text: '', calls: [call], truncated: false, usage };
        return;
      }
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      yield {
        type: 'failed',
        failure: { code: 'model_failed', message: 'cut', facts: {}, retryable: true },
      };
    },
  };
  const first = await startSystem({ model: silent });
  const { task_id: id } = await first.service.create({ description: 'a task' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(requests).toHaveLength(2));
  const image = await crash(first, {});
  const next = await startSystem({
    ...image,
    model: watched([finish(), finish('again')], requests),
  });

  expect(await untilStatus(next, id, 'complete')).toMatchObject({
    result: 'again',
    usage: { turns: 2 },
  });
  expect(requests.map(({ idempotencyKey }) => idempotencyKey.split('/').at(-1))).toEqual([
    'think:1',
    'think:2',
    'think:2',
  ]);
  expect(requests[2]?.idempotencyKey).toBe(requests[1]?.idempotencyKey);
});

test('an attempt whose last answer is known comes to its end on a server without a key', async () => {
  const turns = [{ calls: [write('a', 'made'), ...finish('known').calls] }];
  const prices = { scripted: { input: 1, cachedInput: 1, output: 1 } };
  const setting: Setting = { model: watched(turns, []), options: { prices } };
  const first = await startSystem(setting);
  const { commit } = first.store;
  const answered = new Promise<void>((resolve) => {
    let isAnswered = false;
    first.store.commit = (...changes) => {
      // What follows from the answer is not written any more.
      if (isAnswered) throw new StoreError('the disk is full');
      isAnswered = changes.some(({ step }) => step?.key === 'think:1' && step.result !== null);
      if (!isAnswered) return commit(...changes);
      resolve();
      return commit(...changes.filter(({ actor }) => actor === undefined));
    };
  });
  const { task_id: id } = await first.service.create({ description: 'a task' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await answered;

  const next = await startSystem({ ...(await crash(first, setting)), model: null });
  const view = await untilStatus(next, id, 'complete', 'failed');

  expect(view).toMatchObject({
    status: 'complete',
    result: 'known',
    usage: { turns: 1, cost_usd: 0.000011 },
  });
  expect(readFileSync(join(next.root, 'a'), 'utf8')).toBe('made');
});

test('a question to a person survives, also twice, and its answer reaches the model', async () => {
  const asking: Turn = { calls: [{ tool: 'ask', arguments: { question: 'left or right?' } }] };
  const { first, id, setting, requests } = await open([asking, finish('went left')]);
  const { deadline } = await untilAsked(first, id);
  const second = await startSystem(await crash(first, setting));
  await untilAsked(second, id);
  const third = await startSystem(await crash(second, setting));

  const again = await untilAsked(third, id);
  await respond(third, id, again.input_id, 'left');
  await untilStatus(third, id, 'complete');

  expect(again).toMatchObject({ question: 'left or right?', deadline });
  expect(requests.at(-1)?.messages.at(-1)).toMatchObject({
    role: 'user',
    text: expect.stringContaining('left'),
  });
});

test.each([
  ['is there', false],
  ['can be asked, while tasks are still brought back', true],
])('a question is answered the moment that the next server %s', async (_, restoring) => {
  const asking: Turn = { calls: [{ tool: 'ask', arguments: { question: 'left or right?' } }] };
  const { first, id, setting } = await open([asking, finish('went left')]);
  const { input_id } = await untilAsked(first, id);
  const slow: Setting['tracker'] = (root, ledger) => {
    const tracker = embeddedAt(root, {}, ledger);
    return { ...tracker, findMany: (ids) => delay(300).then(() => tracker.findMany(ids)) };
  };
  const next = await startSystem({ ...(await crash(first, setting)), tracker: slow, restoring });

  const view = await respond(next, id, input_id, 'left');

  expect(view.status).toBe('started');
  expect((await untilStatus(next, id, 'complete')).result).toBe('went left');
});

test('a call that a person denied stays denied after a crash', async () => {
  const turn = {
    calls: [
      ...bash('echo denied > denied').calls,
      { tool: 'edit', arguments: { path: 'x', old_text: 'a', new_text: 'b' } },
    ],
  };
  const { first, id, setting } = await open([turn, finish('well')], {});
  const role = { approvals: ['bash'] };
  await first.stop();
  const asked = await startSystem({ ...setting, role });
  const { task_id: other } = await asked.service.create({ description: 'another' });
  await asked.service.execute({ task: other, role: 'engineer', options: {} });
  const { input_id } = await untilAsked(asked, other);
  const image = await crash(asked, { ...setting, role });
  const next = await startSystem(image);
  await untilAsked(next, other);

  await respond(next, other, input_id, null, 'deny');
  await untilStatus(next, other, 'complete');

  expect(id).not.toBe(other);
  expect(existsSync(join(next.root, 'denied'))).toBe(false);
});

test('a limit of time that passed while nothing ran is kept', async () => {
  const { first, id, setting } = await open([marked], {});
  await untilMarked(first);
  const image = await crash(first, setting);
  const db = openJournal(image.stateDir);
  const [row] = db.prepare('select snapshot from actors where id = ?').all(`${id}#1`) as {
    snapshot: string;
  }[];
  const snapshot = JSON.parse(row?.snapshot ?? '{}');
  snapshot.context.deadlineAt = Date.now() - 1;
  db.prepare('update actors set snapshot = ? where id = ?').run(
    JSON.stringify(snapshot),
    `${id}#1`,
  );
  db.close();
  const next = await startSystem(image);

  expect((await untilStatus(next, id, 'failed')).error).toMatchObject({ code: 'timed_out' });
});

test.each<[string, Turn, Setting['options'], string, RegExp]>([
  [
    'a question',
    { calls: [{ tool: 'ask', arguments: { question: 'left?' } }] },
    { defaultAnswer: 'left' },
    'complete',
    /^$/,
  ],
  ['a request for leave', bash('touch made'), { defaultDecision: 'deny' }, 'complete', /^$/],
  [
    'a question without',
    { calls: [{ tool: 'ask', arguments: { question: 'left?' } }] },
    {},
    'failed',
    /nobody answered/,
  ],
])(
  'the default answer to %s counts too when its time passes while no server runs',
  async (_, turn, more, end, says) => {
    const setting: Setting = {
      turns: [turn, finish('went on')],
      options: { answerMs: 500, ...more },
      role: { approvals: ['bash'] },
    };
    const first = await startSystem(setting);
    const { task_id: id } = await first.service.create({ description: 'a task' });
    await first.service.execute({ task: id, role: 'engineer', options: {} });
    await untilAsked(first, id);
    const image = await crash(first, setting);
    await delay(600);

    const slow: Setting['workspace'] = async (projectRoot) => {
      const shared = createSharedWorkspace({ projectRoot });
      return { ...shared, open: (...attempt) => delay(100).then(() => shared.open(...attempt)) };
    };
    const next = await startSystem({ ...image, workspace: slow });
    const view = await untilStatus(next, id, 'complete', 'failed');

    expect(view.status).toBe(end);
    expect(view.error?.message ?? '').toMatch(says);
    expect(existsSync(join(next.root, 'made'))).toBe(false);
  },
);

test('the steps of an attempt are forgotten when its task is over', async () => {
  const { first, id } = await open([bash('true'), finish()]);
  await untilStatus(first, id, 'complete');

  expect(first.store.steps(id, 1)).toEqual([]);
});

test('a cancel that a crash cut short ends what the earlier process left running', async () => {
  const { first, id, setting } = await open([bash('trap "" TERM; echo made >> marks; sleep 600')]);
  await untilMarked(first);
  const cancelled = first.service.cancel(id, null).catch((error: unknown) => String(error));
  await vi.waitFor(async () => expect((await first.service.status(id)).phase).toBe('cancelling'));
  const image = await crash(first, setting);
  await cancelled;
  const mark = createHash('sha256').update(image.root).digest('hex').slice(0, 12);
  const env = { ATS_ATTEMPT: `${mark}/${id}#1` };
  const left = execa('sleep', ['600'], { detached: true, reject: false, env });
  const other = execa('sleep', ['600'], {
    detached: true,
    reject: false,
    env: { ATS_ATTEMPT: `${mark}/${id}#12` },
  });

  const next = await startSystem(image);
  await untilStatus(next, id, 'cancelled');

  expect((await left).signal).toMatch(/SIGTERM|SIGKILL/);
  expect(other.exitCode).toBeNull();
  other.kill();
});

test('a check that an earlier server left is ended before the agent continues work that was sent back', async () => {
  const ask: Turn = { calls: [{ tool: 'ask', arguments: { question: 'left?' } }] };
  const check = 'if test -e once; then exit 1; fi; touch once; exec sleep 600';
  const setting: Setting = { turns: [finish('early'), ask, finish()], role: { verify: [check] } };
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: 'a task' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(existsSync(join(first.root, 'once'))).toBe(true));
  const image = await crash(first, setting);
  const mark = createHash('sha256').update(image.root).digest('hex').slice(0, 12);
  const env = { ATS_ATTEMPT: `${mark}/${id}#1` };
  const left = execa('sleep', ['600'], { detached: true, reject: false, env });

  await untilAsked(await startSystem(image), id);

  expect((await left).signal).toMatch(/SIGTERM|SIGKILL/);
});

test.each([
  ['before the tracker heard of it', false],
  ['after the tracker closed the task', true],
])(
  'a crash between the results and the end, %s, closes the task once and does nothing again',
  async (_, heard) => {
    const tracker: Setting['tracker'] = (root, ledger) =>
      writingItself(embeddedAt(root, {}, ledger));
    const turns = [bash('echo once >> log'), finish('all of it')];
    const { first, id, requests, setting } = await open(turns, {}, { tracker });
    const { close } = first.tracker;
    let letGo = (): void => {};
    const answer = new Promise<Acceptance>((resolve) => {
      letGo = () => resolve({ refusal: null });
    });
    const reached = new Promise<void>((resolve) => {
      first.tracker.close = async (...args) => {
        if (heard) await close(...args);
        resolve();
        return answer;
      };
    });
    await reached;
    const closedAt = (await first.tracker.find(id as TaskId))?.closedAt ?? null;
    const crashed = crash(first, setting);
    // The image is taken: what the first server does from now on is not in it.
    letGo();
    const next = await startSystem(await crashed);

    const view = await untilStatus(next, id, 'complete');

    const tracked = await next.tracker.find(id as TaskId);
    expect(view).toMatchObject({ attempt: 1, result: 'all of it' });
    expect(requests).toHaveLength(2);
    expect(readFileSync(join(next.root, 'log'), 'utf8')).toBe('once\n');
    expect(tracked).toMatchObject({ status: 'closed', ...(heard ? { closedAt } : {}) });
    expect(closedAt === null).toBe(!heard);
    const frames = next.store.read({ taskId: id, after: 0, limit: 1_000 });
    expect(frames.filter(({ type }) => type === 'completed')).toHaveLength(1);
  },
);
