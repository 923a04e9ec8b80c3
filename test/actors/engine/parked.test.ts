import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { fakeAssistants, runsIn } from '../../support/assistants.ts';
import type { Answer, SeenRequest } from '../../support/model-server.ts';
import {
  finished,
  limited,
  noQuota,
  startProvider,
  untilParked,
  writeHalf,
} from '../../support/provider-limits.ts';
import type { Setting } from '../../support/running.ts';
import { type Running, startSystem, untilStatus } from '../../support/running.ts';

/** Tasks whose provider is at a limit, over real sockets and with real programs. */

const open = async (answer: (request: SeenRequest) => Answer, setting: Setting = {}) => {
  const { provider, model } = await startProvider(answer);
  const whole: Setting = { model, ...setting };
  const running = await startSystem(whole);
  return { running, provider, setting: whole };
};
const begin = async ({ service }: Running, description = 'work', options = {}) => {
  const { task_id } = await service.create({ description });
  await service.execute({ task: task_id, role: 'engineer', options });
  return task_id;
};
const framesOf = async ({ store }: Running, taskId: string, type: string) =>
  (await store.read({ taskId, after: 0, limit: 1_000 })).filter((entry) => entry.type === type);

test('a used-up quota parks the task without a slot, and the attempt goes on where it was', async () => {
  let asked = 0;
  const { running, provider } = await open(() => {
    asked += 1;
    return [writeHalf, noQuota(5)][asked - 1] ?? finished;
  });
  const id = await begin(running);

  const parked = await untilParked(running, id);
  const [explained, slots] = [await running.service.explain(id), running.system.slotUse()];
  const ended = await untilStatus(running, id, 'complete', 'failed');

  expect(parked).toMatchObject({
    status: 'queued',
    phase: 'backing_off',
    attempt: 1,
    parked_reason: 'provider limit: the quota of the provider account is used up: slow down',
  });
  expect(Date.parse(parked.parked_until ?? '')).toBeGreaterThan(Date.now() - 60_000);
  expect(explained.reason).toMatch(/^it is parked until 2.*: provider limit: the quota/);
  expect(slots).toMatchObject({ running: 0, waiting: 0 });
  expect(ended).toMatchObject({ status: 'complete', attempt: 1, usage: { turns: 2 } });
  expect(ended.parked_until).toBeUndefined();
  expect(readFileSync(join(running.root, 'half.txt'), 'utf8')).toBe('half');
  expect(JSON.stringify(provider.requests.at(-1)?.body), 'it knows its conversation').toContain(
    'half.txt',
  );
  const updates = (await framesOf(running, id, 'status_update')).map(({ data }) =>
    JSON.parse(data),
  );
  expect(updates).toContainEqual(
    expect.objectContaining({ status: 'queued', parked_until: parked.parked_until }),
  );
  const [completed] = await framesOf(running, id, 'completed');
  expect(JSON.parse(completed?.data ?? '{}').execution_seconds).toBeLessThan(5);
});

test('another task of the same backend does not call the provider, and says the same reason', async () => {
  const { running, provider } = await open(() => noQuota(600), {
    assistants: fakeAssistants(),
  });
  const first = await begin(running);
  const parked = await untilParked(running, first);

  const second = await begin(running);
  const waits = await untilParked(running, second);
  running.system.reconfigure({ ...running.system.settings(), backend: 'codex' });
  const elsewhere = await untilStatus(running, await begin(running), 'complete', 'failed');

  expect(waits).toMatchObject({
    status: 'queued',
    attempt: 0,
    parked_until: parked.parked_until,
    parked_reason: parked.parked_reason,
  });
  expect(provider.requests, 'only the first task called').toHaveLength(1);
  expect(elsewhere.status, 'a task of another backend').toBe('complete');
});

test('a limit of one provider holds up its tasks only', async () => {
  const { running, provider } = await open(({ body }) =>
    body['model'] === 'one/large' ? noQuota(600) : finished,
  );

  const first = await begin(running, 'work', { model: 'one/large' });
  await untilParked(running, first);
  const second = await begin(running, 'work', { model: 'one/large' });
  const waits = await untilParked(running, second);
  const other = await begin(running, 'work', { model: 'other/large' });
  const ended = await untilStatus(running, other, 'complete', 'failed');

  expect(waits.parked_reason).toMatch(/^provider limit/);
  expect(ended).toMatchObject({ status: 'complete' });
  expect(await running.service.status(first)).toMatchObject({ phase: 'backing_off' });
  expect(provider.requests.map(({ body }) => body['model'])).toEqual(['one/large', 'other/large']);
});

test('a Retry-After of a million years parks for a week', async () => {
  const { running } = await open(() => limited('31536000000000'));

  const { parked_until = '' } = await untilParked(running, await begin(running));

  const week = 7 * 86_400_000;
  expect(Date.parse(parked_until) - Date.now()).toBeLessThanOrEqual(week);
  expect(Date.parse(parked_until) - Date.now()).toBeGreaterThan(week - 60_000);
});

test('with on_quota fail the attempt fails, and no other follows', async () => {
  const { running, provider } = await open(() => limited(3_600), {
    options: { onQuota: 'fail', maxRetries: 3 },
  });
  const id = await begin(running);

  const view = await untilStatus(running, id, 'failed');

  expect(view.error).toMatchObject({ code: 'model_failed' });
  expect(provider.requests).toHaveLength(1);
});

test('a retry tries now, and a person can cancel, close and edit a parked task', async () => {
  let open_ = false;
  const { running } = await open(() => (open_ ? finished : noQuota(600)));
  const { service } = running;
  const [tried, cancelled, closed, edited] = [
    await begin(running),
    await begin(running),
    await begin(running),
    await begin(running),
  ];
  for (const id of [tried, cancelled, closed, edited]) await untilParked(running, id);

  await service.retry(tried, null, null, null);
  await vi.waitFor(async () => expect((await service.status(tried)).usage.model_calls).toBe(2));
  const again = await untilParked(running, tried);
  const ends = [await service.cancel(cancelled, null), await service.close(closed, 'by hand')];
  const renamed = await service.edit(edited, { title: 'a new title' });
  const stillParked = await service.status(edited);
  open_ = true;
  await service.retry(tried, null, null, null);
  const done = await untilStatus(running, tried, 'complete', 'failed');

  expect(again).toMatchObject({ attempt: 1, status: 'queued' });
  expect(done).toMatchObject({ status: 'complete', attempt: 1 });
  expect(ends.map(({ status }) => status)).toEqual(['cancelled', 'complete']);
  expect(renamed).toMatchObject({ title: 'a new title', status: 'queued' });
  expect(stillParked.parked_until).toBeDefined();
});

test('a retry that is answered frees the other parked tasks before its attempt is over', async () => {
  let isOpen = false;
  const { running } = await open(() => {
    if (!isOpen) return noQuota(3_600);
    return { kind: 'answer', calls: [{ name: 'ask', arguments: '{"question":"Which?"}' }] };
  });
  const [first, begun, waits] = [await begin(running), await begin(running), await begin(running)];
  for (const id of [first, begun, waits]) await untilParked(running, id);

  isOpen = true;
  await running.service.retry(first, null, null, null);
  for (const id of [first, begun, waits])
    await vi.waitFor(async () =>
      expect((await running.service.status(id)).phase).toBe('awaiting_input'),
    );

  for (const id of [begun, waits]) {
    const logged = (await framesOf(running, id, 'log')).map(({ data }) => JSON.parse(data).message);
    expect(logged).toContain(
      'the provider answers again: the task goes on before the limit was over',
    );
    expect((await running.service.explain(id)).reason).toMatch(/^it waits for a person/);
  }
});

test('a task at work whose call is answered after the limit frees the parked ones', async () => {
  let isOpen = false;
  const untilFile = '{"command":"while [ ! -e go ]; do :; done"}';
  const { running } = await open(({ body }) => {
    if (isOpen) return finished;
    if (!JSON.stringify(body).includes('long work')) return noQuota(3_600);
    return { kind: 'answer', calls: [{ name: 'bash', arguments: untilFile }] };
  });
  const working = await begin(running, 'long work');
  await vi.waitFor(async () =>
    expect((await running.service.status(working)).phase).toBe('acting'),
  );
  const parked = await begin(running);
  await untilParked(running, parked);

  isOpen = true;
  writeFileSync(join(running.root, 'go'), '');

  expect(await untilStatus(running, parked, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    attempt: 1,
  });
});

test('the parked task and its reason survive a restart, and so does the wall for others', {
  tags: ['slow'],
}, async () => {
  let asked = 0;
  const { running, setting, provider } = await open(() => {
    asked += 1;
    return [writeHalf, noQuota(5)][asked - 1] ?? finished;
  });
  const id = await begin(running);
  const before = await untilParked(running, id);
  await running.stop();

  const next = await startSystem({ ...setting, root: running.root, stateDir: running.stateDir });
  const after = await next.service.status(id);
  const other = await begin(next);
  const waits = await untilParked(next, other);
  const calls = provider.requests.length;
  const ended = await untilStatus(next, id, 'complete', 'failed');

  expect(after).toMatchObject({ parked_until: before.parked_until, attempt: 1, status: 'queued' });
  expect(waits.parked_until).toBe(before.parked_until);
  expect(calls).toBe(2);
  expect(ended).toMatchObject({ status: 'complete', attempt: 1, usage: { turns: 2 } });
  await untilStatus(next, other, 'complete', 'failed');
});

test('the time limit of an attempt does not run while it is parked', {
  tags: ['slow'],
}, async () => {
  let asked = 0;
  const { running } = await open(() => {
    asked += 1;
    return asked === 1 ? noQuota(12) : finished;
  });
  const id = await begin(running, 'work', { timeoutMs: 10_000 });

  await untilParked(running, id);
  const ended = await untilStatus(running, id, 'complete', 'failed');

  expect(ended).toMatchObject({ status: 'complete', attempt: 1 });
});

test.each(['codex', 'claude'] as const)(
  '%s at its usage limit is parked, and goes on with its session',
  { tags: ['slow'] },
  async (backend) => {
    const running = await startSystem({ assistants: fakeAssistants(), options: { backend } });
    const id = await begin(running, 'play: limited');

    const parked = await untilParked(running, id);
    const ended = await untilStatus(running, id, 'complete', 'failed');

    expect(parked).toMatchObject({ status: 'queued', attempt: 1 });
    expect(parked.parked_reason).toMatch(
      new RegExp(`^provider limit: ${backend} failed: You've hit your (usage|session) limit`),
    );
    expect(ended).toMatchObject({ status: 'complete', attempt: 1, result: 'made' });
    const runs = runsIn(running.root);
    expect(runs).toHaveLength(2);
    expect(runs[1]?.argv.join(' ')).toMatch(/resume session-1/);
    expect(existsSync(join(running.root, 'half.txt'))).toBe(true);
  },
);
