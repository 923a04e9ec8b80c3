import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import { StoreError } from '../../../src/actors/store/port.ts';
import { ServiceError } from '../../../src/machines/errors.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { startModelServer } from '../../support/model-server.ts';
import { finish, hang, type Running, startSystem, untilStatus } from '../../support/running.ts';

const newTask = async (
  { service }: Running,
  description = 'a task',
  dependencies: readonly string[] = [],
) => (await service.create({ description, dependencies })).task_id;

const run = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });

const asId = (id: string): TaskId => id as TaskId;

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'accepted',
    (error: unknown) => (error instanceof ServiceError ? error.code : error),
  );

/** Every value of the task machine that was committed, in order. */
const states = ({ store }: Running, taskId: string): readonly unknown[] =>
  store
    .read({ taskId, after: 0, limit: 1_000 })
    .filter(({ type }) => type === 'snapshot')
    .map(({ data }) => JSON.parse(data))
    .filter(({ machine }) => machine === 'task')
    .map(({ value }) => value);

const untilTool = ({ store, system }: Running, taskId: string): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (store.latest(taskId, 'tool_start') === null) return;
      leave();
      resolve();
    };
    const leave = system.journal.onCommit(look);
    look();
  });

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const pidIn = async (root: string): Promise<number> => {
  while (!existsSync(join(root, 'pid')) || readFileSync(join(root, 'pid'), 'utf8') === '')
    await new Promise(setImmediate);
  return Number(readFileSync(join(root, 'pid'), 'utf8'));
};

test('a run goes through check, slot, claim, work, results file and close, in this order', async () => {
  const running = await startSystem({ turns: [finish('the sum is mended')] });
  const id = await newTask(running);
  const seen: string[] = [];
  const { prepare } = running.tracker;
  running.tracker.prepare = (change, preparation) => {
    const results = join(running.root, '.beads', 'tasks', `task-${id}`, '30-results.md');
    seen.push(existsSync(results) ? `${change.kind} after results` : change.kind);
    return prepare(change, preparation);
  };

  await run(running, id);
  const view = await untilStatus(running, id, 'complete');

  expect(states(running, id)).toEqual([
    { queued: 'checking' },
    { queued: 'asking' },
    { queued: 'waitingForSlot' },
    { started: 'claiming' },
    { started: 'working' },
    { started: 'recording' },
    { started: 'closing' },
    'complete',
  ]);
  expect(seen).toEqual(['claim', 'close after results']);
  expect(view).toMatchObject({
    status: 'complete',
    phase: 'complete',
    attempt: 1,
    role: 'engineer',
    progress: 1,
    result: 'the sum is mended',
    results_path: `.beads/tasks/task-${id}/30-results.md`,
    usage: { turns: 1, model_calls: 1, tool_calls: 1 },
  });
  expect((await running.tracker.find(id as never))?.status).toBe('closed');
});

test('the results file says what was done, and that no model was called', async () => {
  const running = await startSystem({ turns: [finish('the sum is mended')] });
  const id = await newTask(running, 'Mend the sum');
  await run(running, id);
  await untilStatus(running, id, 'complete');
  const folder = join(running.root, '.beads', 'tasks', `task-${id}`);

  const text = readFileSync(join(folder, '30-results.md'), 'utf8');

  expect(text).toMatch(/^# Mend the sum\n/);
  expect(text).toContain('the sum is mended');
  expect(text).toContain('no language model was called');
  expect(JSON.parse(readFileSync(join(folder, '00-metadata.json'), 'utf8'))).toMatchObject({
    task_id: id,
    role: 'engineer',
    attempt: 1,
    status: 'complete',
    model: 'scripted',
  });
  expect(readFileSync(join(folder, '20-work-log.md'), 'utf8')).toContain('`finish`');
});

test('20 executes at once: one is accepted, and 19 are told that it runs', async () => {
  const running = await startSystem({ turns: [hang] });
  const id = await newTask(running);

  const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(run(running, id))));

  expect(codes.filter((code) => code === 'accepted')).toHaveLength(1);
  expect(codes.filter((code) => code === 'already_running')).toHaveLength(19);
  await running.service.cancel(id, null);
});

test('explain names the cap of a role that keeps a task from a free slot', async () => {
  const running = await startSystem({ turns: [hang], role: { concurrency: 1 } });
  const [first = '', second = ''] = [await newTask(running), await newTask(running)];
  await run(running, first);
  await run(running, second);

  const { guards, reason } = await running.service.explain(second);

  expect(reason).toBe('it waits for a slot of the role engineer, which has 1; 1 wait');
  expect(guards.find(({ guard }) => guard === 'slotIsFree')).toMatchObject({
    value: false,
    inputs: { running: 1, cap: 3, role: 'engineer', role_running: 1, role_cap: 1 },
  });
  for (const id of [second, first]) await running.service.cancel(id, null);
});

test('no more tasks hold a slot than the cap allows, and who waits stays open in the tracker', async () => {
  const running = await startSystem({ turns: [hang], options: { cap: 2 } });
  const ids = await Promise.all([1, 2, 3, 4].map(() => newTask(running)));

  for (const id of ids) await run(running, id);
  await untilTool(running, ids[0] ?? '');
  await untilTool(running, ids[1] ?? '');

  expect(running.system.slotUse()).toEqual({
    running: 2,
    waiting: 2,
    cap: 2,
    queueLimit: 100,
    paused: null,
  });
  expect((await running.service.explain(ids[3] ?? '')).reason).toBe(
    'it waits for one of 2 slots; 2 wait',
  );
  expect((await running.service.explain(ids[0] ?? '')).reason).toBeNull();
  const statuses = (await running.tracker.list()).map(({ id, status }) => [id, status]);
  expect(Object.fromEntries(statuses)).toEqual({
    [ids[0] ?? '']: 'in_progress',
    [ids[1] ?? '']: 'in_progress',
    [ids[2] ?? '']: 'open',
    [ids[3] ?? '']: 'open',
  });
  expect(await running.service.status(ids[2] ?? '')).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_slot',
    attempt: 0,
  });

  await running.service.cancel(ids[0] ?? '', null);
  await untilTool(running, ids[2] ?? '');
  expect(running.system.slotUse()).toEqual({
    running: 2,
    waiting: 1,
    cap: 2,
    queueLimit: 100,
    paused: null,
  });
  for (const id of ids.slice(1)) await running.service.cancel(id, null);
});

test('a task whose dependency is complete becomes ready without another event', async () => {
  const running = await startSystem({ turns: [finish()] });
  const first = await newTask(running, 'first');
  const second = await newTask(running, 'second', [first]);
  const ready = async () =>
    (await running.service.list({ status: 'queued' })).tasks.map(({ task_id }) => task_id);
  expect(await ready()).toEqual([first]);

  await run(running, first);
  await untilStatus(running, first, 'complete');

  expect(await ready()).toEqual([second]);
});

test('a cancel stops the agent, its processes and nothing else, and is answered the same again', async () => {
  const running = await startSystem({ turns: [hang] });
  const id = await newTask(running);
  await run(running, id);
  const pid = await pidIn(running.root);

  const answers = await Promise.all(
    Array.from({ length: 10 }, () => running.service.cancel(id, 'not now')),
  );

  expect(alive(pid)).toBe(false);
  for (const view of answers)
    expect(view).toMatchObject({ status: 'cancelled', phase: 'cancelled', attempt: 1 });
  expect(states(running, id).filter((value) => value === 'cancelled')).toHaveLength(1);
  expect(await running.tracker.find(id as never)).toMatchObject({
    status: 'open',
    assignee: null,
    labels: ['agent-cancelled'],
  });
  expect((await running.service.cancel(id, null)).status).toBe('cancelled');
  const results = readFileSync(join(running.root, answers[0]?.results_path ?? ''), 'utf8');
  expect(results).toContain('- Attempt: 1\n- Status: cancelled');
  expect(results).toContain('The attempt was cancelled: not now');
});

test('a run that is cancelled while it waits leaves the results of the attempt before as they are', async () => {
  const running = await startSystem({ turns: [finish()] });
  const id = await newTask(running);
  await run(running, id);
  const { results_path: path = '' } = await untilStatus(running, id, 'complete');
  await running.service.reopen(id, null);
  running.system.reconfigure({ ...running.system.settings(), cap: 0 });
  await run(running, id);

  const view = await running.service.cancel(id, null);

  expect(view).toMatchObject({ status: 'cancelled', attempt: 1, results_path: path });
  expect(readFileSync(join(running.root, path), 'utf8')).toContain(
    '- Attempt: 1\n- Status: complete',
  );
});

test('a task that waits for a slot can be cancelled, and one that nobody asked for', async () => {
  const running = await startSystem({ turns: [hang], options: { cap: 1 } });
  const [busy, waiting, idle] = [
    await newTask(running),
    await newTask(running),
    await newTask(running),
  ];
  await run(running, busy);
  await run(running, waiting);

  expect(await running.service.cancel(waiting, null)).toMatchObject({
    status: 'cancelled',
    attempt: 0,
  });
  expect(await running.service.cancel(idle, null)).toMatchObject({
    status: 'cancelled',
    attempt: 0,
  });
  expect(running.system.slotUse()).toMatchObject({ running: 1, waiting: 0 });
  await running.service.cancel(busy, null);
});

test('a failed task says why, is given back to the tracker, and runs again by retry', async () => {
  const running = await startSystem({ turns: [finish('the tests fail', 'failed')] });
  const id = await newTask(running);
  await run(running, id);

  const view = await untilStatus(running, id, 'failed');

  expect(view.error).toMatchObject({
    code: 'model_failed',
    message: 'the agent gave up: the tests fail',
  });
  expect(await running.tracker.find(id as never)).toMatchObject({
    status: 'open',
    labels: ['agent-failed'],
  });
  expect(await codeOf(run(running, id))).toBe('event_not_allowed');
  await running.service.retry(id, null, null, null);
  expect((await untilStatus(running, id, 'failed')).attempt).toBeGreaterThanOrEqual(1);
});

test('the wall limit ends an attempt with its processes', async () => {
  const running = await startSystem({ turns: [hang] });
  const id = await newTask(running);
  await running.service.execute({ task: id, role: 'engineer', options: { timeoutMs: 300 } });
  const pid = await pidIn(running.root);

  const view = await untilStatus(running, id, 'failed');

  expect(view.error?.code).toBe('timed_out');
  expect(alive(pid)).toBe(false);
});

test('the turn limit ends an attempt', async () => {
  const look = { calls: [{ tool: 'bash', arguments: { command: 'date +%N' } }] };
  const running = await startSystem({ turns: Array.from({ length: 9 }, () => look) });
  const id = await newTask(running);
  await running.service.execute({ task: id, role: 'engineer', options: { maxTurns: 3 } });

  const view = await untilStatus(running, id, 'failed');

  expect(view).toMatchObject({
    error: { code: 'budget_exceeded' },
    usage: { turns: 3, model_calls: 3 },
  });
});

test('the same call with the same result again and again ends an attempt', async () => {
  const same = { calls: [{ tool: 'find', arguments: { pattern: 'nothing-here' } }] };
  const running = await startSystem({ turns: Array.from({ length: 15 }, () => same) });
  const id = await newTask(running);
  await run(running, id);

  expect((await untilStatus(running, id, 'failed')).error?.code).toBe('loop_detected');
});

test('a role cannot use a tool that is not its own', async () => {
  const write = { calls: [{ tool: 'write', arguments: { path: 'x.txt', content: 'x' } }] };
  const running = await startSystem({ turns: [write, finish()] });
  const id = await newTask(running);
  await running.service.execute({ task: id, role: 'reviewer', options: {} });

  await untilStatus(running, id, 'complete');

  expect(existsSync(join(running.root, 'x.txt'))).toBe(false);
  expect(
    readFileSync(join(running.root, '.beads', 'tasks', `task-${id}`, '20-work-log.md'), 'utf8'),
  ).toContain('not ok');
});

test('a command that must pass keeps the task from completing', async () => {
  const running = await startSystem({ turns: [finish()] });
  const [good, bad] = [await newTask(running), await newTask(running)];
  await running.service.execute({
    task: good,
    role: 'engineer',
    options: { verify: ['true', 'test -d .'] },
  });
  const failing = "printf 'it is \\033[1;31mbroken\\033[0m'; exit 3";
  await running.service.execute({
    task: bad,
    role: 'engineer',
    options: { verify: ['true', failing] },
  });

  expect((await untilStatus(running, good, 'complete')).status).toBe('complete');
  expect((await untilStatus(running, bad, 'failed')).error).toMatchObject({
    code: 'verify_failed',
    facts: {
      command: failing,
      exit_code: 3,
      output: 'it is broken',
    },
  });
});

test('without a credential a run is refused with the name of the variable', async () => {
  const running = await startSystem({ model: null });
  const id = await newTask(running);

  const refused = run(running, id);

  await expect(refused).rejects.toMatchObject({
    code: 'credential_missing',
    facts: { variable: 'OPENAI_API_KEY' },
  });
  expect(await running.service.status(id)).toMatchObject({
    status: 'queued',
    attempt: 0,
    error: { code: 'credential_missing' },
  });
});

test('a provider that is away for a moment costs an attempt, and the next one completes', async () => {
  const provider = await startModelServer((_, number) =>
    number === 1
      ? { kind: 'status', status: 503 }
      : {
          kind: 'answer',
          text: 'I am done.',
          calls: [{ name: 'finish', arguments: '{"status":"done","summary":"well"}' }],
        },
  );
  const model = createOpenAiChatModel({ apiKey: 'sk-test-0123456789', baseURL: provider.baseURL });
  const running = await startSystem({ model, options: { maxRetries: 1 } });
  const id = await newTask(running, 'Mend the sum');
  await run(running, id);

  const between = await vi.waitFor(async () => {
    const now = await running.service.status(id);
    expect(now.phase).toBe('backing_off');
    return now;
  });
  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(between).toMatchObject({
    attempt: 1,
    max_attempts: 2,
    activity: expect.stringContaining('503'),
  });
  expect(view).toMatchObject({
    status: 'complete',
    attempt: 2,
    max_attempts: 2,
    result: 'well',
    usage: { input_tokens: 11, output_tokens: 7 },
  });
  expect(states(running, id)).toContainEqual({ queued: 'backingOff' });
  expect(running.system.counters()).toMatchObject({ spawned: 2, callsTotal: 2, callsFailed: 1 });
  expect(JSON.stringify(provider.requests[1]?.body)).toContain('Mend the sum');
});

test('an agent gets the results of the tasks that its task depends on', async () => {
  const provider = await startModelServer((_, number) => ({
    kind: 'answer',
    calls: [
      {
        name: 'finish',
        arguments: JSON.stringify({ status: 'done', summary: `the secret word is plum-${number}` }),
      },
    ],
  }));
  const model = createOpenAiChatModel({ apiKey: 'sk-test-0123456789', baseURL: provider.baseURL });
  const running = await startSystem({ model });
  const first = await newTask(running, 'first');
  const second = await newTask(running, 'second', [first]);

  await run(running, first);
  await untilStatus(running, first, 'complete');
  await run(running, second);
  await untilStatus(running, second, 'complete');

  expect(JSON.stringify(provider.requests[0]?.body)).not.toContain('plum-1');
  expect(JSON.stringify(provider.requests[1]?.body)).toContain('plum-1');
});

test('the files of an earlier attempt are kept', async () => {
  const running = await startSystem({ turns: [finish('not yet', 'failed')] });
  const id = await newTask(running);
  await run(running, id);
  await untilStatus(running, id, 'failed');
  await running.service.retry(id, 'tester', null, null);
  while (
    (await running.service.status(id)).attempt < 2 ||
    (await running.service.status(id)).status !== 'failed'
  )
    await new Promise(setImmediate);
  const folder = join(running.root, '.beads', 'tasks', `task-${id}`);
  const metadata = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'));

  expect(metadata('00-metadata.json')).toMatchObject({
    attempt: 2,
    role: 'tester',
    status: 'failed',
  });
  expect(metadata('attempts/1/00-metadata.json')).toMatchObject({ attempt: 1, role: 'engineer' });
  expect(existsSync(join(folder, 'attempts', '1', '30-results.md'))).toBe(true);
});

test('a full queue is said at once', async () => {
  const running = await startSystem({ turns: [hang], options: { cap: 1, queueLimit: 1 } });
  const ids = await Promise.all([1, 2, 3].map(() => newTask(running)));
  await run(running, ids[0] ?? '');
  await run(running, ids[1] ?? '');

  expect(await codeOf(run(running, ids[2] ?? ''))).toBe('queue_full');
  for (const id of ids.slice(0, 2)) await running.service.cancel(id, null);
});

test('the queue takes no more than its limit of twenty runs at once', async () => {
  const running = await startSystem({ turns: [hang], options: { cap: 1, queueLimit: 1 } });
  const ids = await Promise.all(Array.from({ length: 20 }, () => newTask(running)));

  const codes = await Promise.all(
    ids.map((id) =>
      run(running, id).then(
        () => 'ok',
        ({ code }) => code,
      ),
    ),
  );

  expect(codes.toSorted()).toEqual(['ok', 'ok', ...Array.from({ length: 18 }, () => 'queue_full')]);
  expect(running.system.slotUse()).toMatchObject({ running: 1, waiting: 1, queueLimit: 1 });
  for (const { taskId } of running.store.tasks('pending'))
    await running.service.cancel(taskId, null);
});

test('close and reopen by hand, twice each', async () => {
  const running = await startSystem();
  const id = await newTask(running);

  expect(await running.service.close(id, null)).toMatchObject({ status: 'complete', attempt: 0 });
  expect((await running.service.close(id, null)).status).toBe('complete');
  expect((await running.service.reopen(id, null)).status).toBe('queued');
  expect(await codeOf(running.service.reopen(id, null))).toBe('event_not_allowed');
});

test('a failed task that is closed by hand has the reason of the close, and the tracker is told of no agent', async () => {
  const running = await startSystem({ turns: [finish('the tests fail', 'failed')] });
  const ids = await Promise.all([newTask(running), newTask(running)]);
  for (const id of ids) {
    await run(running, id);
    await untilStatus(running, id, 'failed');
  }
  const [first, second] = ids as [string, string];

  const said = await running.service.close(first, 'done in the office');
  const silent = await running.service.close(second, null);

  expect(said).toMatchObject({ status: 'complete', close_reason: 'done in the office' });
  expect(silent).not.toHaveProperty('close_reason');
  expect((await running.tracker.find(asId(second)))?.closeReason).toBe(
    'Closed by hand with agent close',
  );
});

test('what an attempt said whose checks failed is no result of a task that is closed by hand', async () => {
  const running = await startSystem({ turns: [finish('one'), finish('two'), finish('three')] });
  const ids = [await newTask(running), await newTask(running)];
  for (const task of ids) {
    await running.service.execute({ task, role: 'engineer', options: { verify: ['false'] } });
    await untilStatus(running, task, 'failed');
  }
  const [here, inTracker] = ids as [string, string];

  await running.service.close(here, 'done in the office');
  await running.tracker.close(asId(inTracker), 'done in the tracker');

  const closed = await running.service.status(here);
  expect(closed).toMatchObject({ status: 'complete', close_reason: 'done in the office' });
  expect(closed).not.toHaveProperty('result');
  expect(await running.service.status(inTracker)).not.toHaveProperty('result');
  const completed = await running.store.latest(here, 'completed');
  expect(JSON.parse(completed?.data ?? '{}')).toMatchObject({ by_hand: true, result: '' });
});

test('a task with an open dependency cannot be closed by hand', async () => {
  const running = await startSystem();
  const first = await newTask(running);
  const second = await newTask(running, 'second', [first]);

  expect(await codeOf(running.service.close(second, null))).toBe('dependencies_unmet');
  expect((await running.service.status(second)).status).toBe('queued');
});

test('the server follows tasks that somebody else closes or reopens in the tracker', async () => {
  const running = await startSystem({ turns: [finish()] });
  const id = await newTask(running);
  await run(running, id);
  await untilStatus(running, id, 'complete');

  await running.tracker.reopen(id as never);

  expect(await running.service.status(id)).toMatchObject({ status: 'queued', ready: true });
  await run(running, id);
  expect((await untilStatus(running, id, 'complete')).status).toBe('complete');
});

test('after a restart the queue goes on, and so does an attempt that was at work', async () => {
  const first = await startSystem({ turns: [hang], options: { cap: 1 } });
  const [working, waiting] = [await newTask(first), await newTask(first)];
  await run(first, working);
  await untilTool(first, working);
  await run(first, waiting);
  await first.stop();

  const second = await startSystem({
    root: first.root,
    stateDir: first.stateDir,
    turns: [finish('after the restart'), finish('after the restart, on turn two')],
  });
  const resumed = await untilStatus(second, working, 'complete');
  const done = await untilStatus(second, waiting, 'complete');

  expect(resumed).toMatchObject({
    attempt: 1,
    result: 'after the restart, on turn two',
    usage: { turns: 2 },
  });
  expect(done).toMatchObject({ attempt: 1, result: 'after the restart' });
});

test('after a restart tasks that wait get slots by priority, then in the order in which they were submitted', async () => {
  const setting = { turns: [hang], options: { cap: 0 } };
  const first = await startSystem(setting);
  const ids: string[] = [];
  for (const priority of [2, 2, 0, 1, 2, 0])
    ids.push(
      (await first.service.create({ description: `of priority ${priority}`, priority })).task_id,
    );
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now());
  for (const id of ids.toSorted().toReversed()) await run(first, id);
  clock.mockRestore();
  await first.stop();

  const options = { cap: 6 };
  const second = await startSystem({
    ...setting,
    options,
    root: first.root,
    stateDir: first.stateDir,
  });
  const begun = (): readonly string[] =>
    second.store
      .read({ after: 0, limit: 1_000 })
      .filter(
        ({ type, data }) => type === 'snapshot' && JSON.parse(data).value?.started === 'claiming',
      )
      .map(({ taskId }) => taskId);
  await vi.waitFor(() => expect(begun()).toHaveLength(6));

  const priorityOf = new Map(
    (await second.tracker.list()).map(({ id, priority }) => [id as string, priority]),
  );
  const submitted = ids.toSorted().toReversed();
  expect(begun()).toEqual(
    submitted.toSorted((one, other) => (priorityOf.get(one) ?? 9) - (priorityOf.get(other) ?? 9)),
  );
  for (const id of ids) await second.service.cancel(id, null);
});

test('a transition that cannot be committed changes nothing, and the task goes on from there', async () => {
  const running = await startSystem({ turns: [finish()] });
  const id = await newTask(running);
  const commit = running.store.commit;
  running.store.commit = () => {
    throw new Error('disk full');
  };

  await expect(run(running, id)).rejects.toMatchObject({ code: 'internal' });
  running.store.commit = commit;

  expect(await running.service.status(id)).toMatchObject({ status: 'queued', attempt: 0 });
  await run(running, id);
  expect((await untilStatus(running, id, 'complete')).status).toBe('complete');
});

test('a task whose commit fails at work stops its agent, keeps its slot, and goes on later', {
  tags: ['slow'],
}, async () => {
  const running = await startSystem({ turns: [hang, finish('went on')] });
  const id = await newTask(running);
  await run(running, id);
  const pid = await pidIn(running.root);
  const commit = running.store.commit;
  running.store.commit = () => {
    throw new Error('disk full');
  };

  await expect(running.service.cancel(id, null)).rejects.toMatchObject({ code: 'internal' });
  expect(running.system.slotUse().running).toBe(1);
  while (alive(pid)) await new Promise(setImmediate);
  running.store.commit = commit;

  const view = await untilStatus(running, id, 'complete');
  expect(view).toMatchObject({ attempt: 1, result: 'went on' });
});

test('the counters are recounted from the journal', async () => {
  const first = await startSystem({ turns: [finish()] });
  const id = await newTask(first);
  await run(first, id);
  await untilStatus(first, id, 'complete');
  const before = first.system.counters();
  await first.stop();

  const second = await startSystem({ root: first.root, stateDir: first.stateDir });

  expect(before).toMatchObject({ spawned: 1, completed: 1, failed: 0, callsTotal: 1 });
  expect(second.system.counters()).toEqual(before);
});

test('a task is on disk as waiting before a caller is told so', async () => {
  const running = await startSystem({ turns: [hang], options: { cap: 1 } });
  const [first, second] = [await newTask(running), await newTask(running)];
  await running.service.execute({ task: first, role: 'engineer', options: {} });

  const { phase } = await running.service.execute({ task: second, role: 'engineer', options: {} });

  expect(phase).toBe('waiting_for_slot');
  expect(JSON.parse(running.store.actor(second)?.snapshot ?? '{}').value).toEqual({
    queued: 'waitingForSlot',
  });
  for (const id of [second, first]) await running.service.cancel(id, null);
});

test('a run whose acceptance cannot be written is refused, and does not begin later', async () => {
  const running = await startSystem({ options: { cap: 0 } });
  const id = await newTask(running);
  const { commit } = running.store;
  running.store.commit = () => {
    throw new StoreError('the journal cannot be written: no space');
  };

  const run = running.service.execute({ task: id, role: 'engineer', options: {} });

  await expect(run).rejects.toMatchObject({
    code: 'internal',
    message: expect.stringContaining('no space'),
  });
  running.store.commit = commit;
  await running.system.journal.flush();
  expect(running.store.actor(id)?.pending ?? false).toBe(false);
  expect(running.system.slotUse().waiting).toBe(0);
  expect(await running.service.status(id)).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_run',
    attempt: 0,
  });
  expect(await running.service.execute({ task: id, role: 'engineer', options: {} })).toMatchObject({
    phase: 'waiting_for_slot',
  });
});

test('a task that waits for a failed one says so, and by policy fails with it, down the line', async () => {
  const turns = [finish('no luck', 'failed')];
  const waiting = await startSystem({ turns });
  const failing = await startSystem({ turns, options: { onDependencyFailure: 'fail' } });
  const chain = async (running: Running) => {
    const first = await newTask(running);
    const second = await newTask(running, 'second', [first]);
    const third = await newTask(running, 'third', [second]);
    await run(running, first);
    await untilStatus(running, first, 'failed');
    return [first, second, third] as const;
  };

  const [first, second] = await chain(waiting);
  const [head, next, last] = await chain(failing);
  const lost = await untilStatus(failing, last, 'failed');

  expect((await waiting.service.explain(second)).reason).toBe(
    `it waits for ${first} (failed: the agent gave up: no luck; run it again with: agent retry ${first})`,
  );
  expect((await waiting.service.status(second)).status).toBe('queued');
  expect((await failing.service.status(next)).error).toMatchObject({
    message: `it depends on ${head}, which failed: the agent gave up: no luck`,
    facts: { dependency: head },
  });
  expect(lost.error?.message).toContain(
    `it depends on ${next}, which failed: it depends on ${head}`,
  );
  expect(await failing.tracker.find(last as never)).toMatchObject({
    status: 'open',
    labels: ['agent-failed'],
  });
});
