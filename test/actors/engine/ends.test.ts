import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test, vi } from 'vitest';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import type { Model, ModelEvent } from '../../../src/actors/model/port.ts';
import type { RunOptions, TaskId } from '../../../src/machines/task.ts';
import { startModelServer } from '../../support/model-server.ts';
import {
  finish,
  hang,
  type Running,
  startServer,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { isAlive } from '../agent/workbench.ts';

/** How attempts end, and what is left of them. */

const newTask = async ({ service }: Running, dependencies: readonly string[] = []) =>
  (await service.create({ description: 'a task', dependencies })).task_id;
const run = ({ service }: Running, task: string, options: RunOptions = {}) =>
  service.execute({ task, role: 'engineer', options });
const bash = (command: string): Turn => ({ calls: [{ tool: 'bash', arguments: { command } }] });

/** The process ids that commands wrote to a file, when there are so many. */
const pidsIn = (root: string, count: number) =>
  vi.waitFor(() => {
    const pids = readFileSync(join(root, 'pids'), 'utf8').trim().split('\n').map(Number);
    expect(pids).toHaveLength(count);
    return pids;
  });
const alive = async (pids: readonly number[]): Promise<readonly number[]> => {
  const found = await Promise.all(pids.map(isAlive));
  return pids.filter((_, index) => found[index]);
};

const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
const answered = (summary: string): ModelEvent => ({
  type: 'answered',
  text: '',
  calls: [{ id: 'a', tool: 'finish', arguments: JSON.stringify({ status: 'done', summary }) }],
  truncated: false,
  usage,
});

test('words of an agent whose attempt is over change nothing, and the next attempt waits until it is silent', async () => {
  let speak = (): void => {};
  const late = new Promise<void>((resolve) => {
    speak = resolve;
  });
  let asked = 0;
  const deaf: Model = {
    name: 'deaf',
    disclaimer: null,
    async *ask(): AsyncGenerator<ModelEvent> {
      asked += 1;
      if (asked > 1) yield answered('the second attempt');
      else {
        await late;
        yield answered('too late');
      }
    },
  };
  const running = await startSystem({ model: deaf });
  const id = await newTask(running);
  await run(running, id);
  await vi.waitFor(() => expect(asked).toBe(1));

  const cancelled = running.service.cancel(id, null);
  await vi.waitFor(async () => expect((await running.service.status(id)).phase).toBe('cancelling'));
  const other = await newTask(running);
  await run(running, other);
  await untilStatus(running, other, 'complete');
  expect((await running.service.status(id)).phase).toBe('cancelling');
  await expect(running.service.retry(id, null, null, null)).rejects.toMatchObject({
    code: 'event_not_allowed',
  });
  speak();
  await cancelled;
  await running.service.retry(id, null, null, null);
  const view = await untilStatus(running, id, 'complete');

  expect(view).toMatchObject({ attempt: 2, result: 'the second attempt' });
  const frames = running.store.read({ taskId: id, after: 0, limit: 1_000 });
  expect(
    frames
      .filter(({ type }) => ['completed', 'cancelled'].includes(type))
      .map(({ type, attempt }) => [type, attempt]),
  ).toEqual([
    ['cancelled', 1],
    ['completed', 2],
  ]);
  expect(readFileSync(join(running.root, view.results_path ?? ''), 'utf8')).not.toContain(
    'too late',
  );
});

test('an attempt that ran out of time is over only when processes that ignore SIGTERM are gone, and a retry meets none of them', {
  tags: ['slow'],
}, async () => {
  const deaf = bash('trap "" TERM; echo $$ >> pids; while :; do sleep 0.05; done');
  const look = bash('kill -0 $(head -1 pids) 2>/dev/null && touch twins; echo $$ >> pids');
  const running = await startSystem({
    model: {
      name: 'two attempts',
      disclaimer: null,
      async *ask({ asker, messages }): AsyncGenerator<ModelEvent> {
        const [call] = (asker.attempt === 1 ? deaf : look).calls;
        const arguments_ = JSON.stringify(call?.arguments);
        if (messages.some(({ role }) => role === 'tool')) yield answered('alone');
        else
          yield {
            type: 'answered',
            text: '',
            calls: [{ id: 'a', tool: 'bash', arguments: arguments_ }],
            truncated: false,
            usage,
          };
      },
    },
  });
  const id = await newTask(running);
  await run(running, id, { timeoutMs: 5_000 });
  const pids = await pidsIn(running.root, 1);

  const view = await untilStatus(running, id, 'failed');
  const left = await alive(pids);
  await running.service.retry(id, null, {}, null);

  expect(view.error?.code).toBe('timed_out');
  expect(left).toEqual([]);
  expect(await untilStatus(running, id, 'complete')).toMatchObject({ attempt: 2, result: 'alone' });
  expect(existsSync(join(running.root, 'twins'))).toBe(false);
});

test('a cancel leaves no process of the attempt, neither a daemon nor one that ignores SIGTERM', {
  tags: ['slow'],
}, async () => {
  const daemon = `setsid sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.05; done' &`;
  const running = await startSystem({
    turns: [bash(`${daemon} trap "" TERM; echo $$ >> pids; sleep 600 & wait`)],
  });
  const id = await newTask(running);
  await run(running, id);
  const pids = await pidsIn(running.root, 2);
  expect(await alive(pids)).toEqual(pids);

  const view = await running.service.cancel(id, null);

  expect(view.status).toBe('cancelled');
  expect(await alive(pids)).toEqual([]);
});

test('a command that takes longer than the provider may be silent is no stall', {
  tags: ['slow'],
}, async () => {
  const provider = await startModelServer((_, number) => ({
    kind: 'answer',
    calls: [
      number === 1
        ? { name: 'bash', arguments: '{"command":"sleep 6; echo slept"}' }
        : { name: 'finish', arguments: '{"status":"done","summary":"in its own time"}' },
    ],
  }));
  const timeouts = {
    connectMs: 5_000,
    firstByteMs: 5_000,
    idleMs: 5_000,
    progressMs: 5_000,
    turnMs: 5_000,
  };
  const model = createOpenAiChatModel({
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
    timeouts,
  });
  const running = await startSystem({ model });
  const id = await newTask(running);
  await run(running, id);

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', attempt: 1, result: 'in its own time' });
  expect(JSON.stringify(provider.requests[1]?.body)).toContain('slept');
});

test('a task that is blocked while it waits for a slot does not begin, says why, and gives the slot to the next', async () => {
  const running = await startSystem({ turns: [finish()], options: { cap: 0 } });
  const [blocked, next, blocker] = [
    await newTask(running),
    await newTask(running),
    await newTask(running),
  ];
  await run(running, blocked);
  await run(running, next);

  await running.tracker.addDependency(blocked as TaskId, blocker as TaskId);
  running.system.reconfigure({ ...running.system.settings(), cap: 1 });
  await untilStatus(running, next, 'complete');

  expect(await running.service.status(blocked)).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_dependencies',
    error: { code: 'dependencies_unmet', facts: { unmet: [blocker] } },
    usage: { model_calls: 0 },
  });
  expect((await running.service.explain(blocked)).reason).toContain(blocker);
});

test('a task that was away when its run was to begin, and is back, is not said to be missing', async () => {
  const running = await startSystem({ turns: [finish()], options: { cap: 0 } });
  const [away, next] = [await newTask(running), await newTask(running)];
  await run(running, away);
  await run(running, next);
  const file = join(running.root, '.beads', 'issues.jsonl');
  await running.ledger.exchange.flush();
  const text = readFileSync(file, 'utf8');
  const others = text.split('\n').filter((line) => !line.includes(`"id":"${away}"`));
  writeFileSync(file, others.join('\n'));
  await vi.waitFor(async () => expect(await running.tracker.find(away as TaskId)).toBeNull());

  running.system.reconfigure({ ...running.system.settings(), cap: 1 });
  await untilStatus(running, next, 'complete');
  writeFileSync(file, text);

  expect((await running.service.explain(away)).reason).toBe(
    'it was missing in the tracker when its run was to begin; nobody has asked for a run since',
  );
});

const breaking: Model = {
  name: 'breaking',
  disclaimer: null,
  // biome-ignore lint/correctness/useYield: it breaks before it says anything
  async *ask(): AsyncGenerator<ModelEvent> {
    throw new Error('spawn ENOENT');
  },
};

test.each<[string, string, { turns?: readonly Turn[]; model?: Model }, RunOptions]>([
  ['gives up', 'model_failed', { turns: [finish('no', 'failed')] }, {}],
  ['takes too long', 'timed_out', { turns: [hang] }, { timeoutMs: 300 }],
  ['breaks before it begins', 'internal', { model: breaking }, {}],
  [
    'says nothing useful',
    'model_failed',
    { turns: Array.from({ length: 9 }, () => ({ say: 'all is done', calls: [] })) },
    {},
  ],
  [
    'does not pass its check',
    'verify_failed',
    { turns: [finish(), finish(), finish()] },
    { verify: ['false'] },
  ],
])(
  'a task whose agent %s ends as failed by name, and is given back to the tracker',
  async (_, code, setting, options) => {
    const running = await startSystem(setting);
    const id = await newTask(running);
    await run(running, id, options);

    const view = await untilStatus(running, id, 'failed', 'complete');

    expect(view).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code, message: expect.stringMatching(/\w+ \w+/) },
    });
    expect(await running.tracker.find(id as TaskId)).toMatchObject({
      status: 'open',
      assignee: null,
      labels: ['agent-failed'],
    });
    expect(running.system.slotUse()).toMatchObject({ running: 0, waiting: 0 });
  },
);

test.each([
  ['blocked: cannot proceed, everything failed', 'done', 'complete'],
  ['all done, complete success', 'failed', 'failed'],
])(
  'the status that the agent gives counts, not its words: %s (%s)',
  async (summary, status, end) => {
    const running = await startSystem({ turns: [finish(summary, status)] });
    const id = await newTask(running);
    await run(running, id);

    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view.status).toBe(end);
    expect(view.result ?? view.error?.message).toContain(summary);
  },
);

test('a task that four readers poll is always found, its status and progress never go back, and its end time stays', async () => {
  const server = await startServer({ turns: [bash('true'), finish()] });
  const id = await newTask(server);
  const statuses = ['queued', 'started', 'complete'];
  const askers = [1, 2, 3, 4].map(
    (): { status: string; progress: number; completed_at?: string }[] => [],
  );
  let over = false;
  const asking = askers.map(async (seen) => {
    while (!over) {
      const { result, error } = await server.call('status', { task_id: id });
      expect(error).toBeUndefined();
      seen.push(result);
    }
  });
  const untilAsked = (more: number) => {
    const counts = askers.map((seen) => seen.length + more);
    return vi.waitFor(() =>
      expect(askers.every((seen, n) => seen.length >= (counts[n] ?? 0))).toBe(true),
    );
  };

  await untilAsked(1);
  await run(server, id);
  const { completed_at } = await untilStatus(server, id, 'complete');
  await untilAsked(3);
  over = true;
  await Promise.all(asking);

  for (const seen of askers) {
    const ranks = seen.map(({ status, progress }) => statuses.indexOf(status) * 10 + progress);
    expect(ranks).toEqual(ranks.toSorted((one, other) => one - other));
    expect(seen[0]?.status).toBe('queued');
    expect(seen.at(-1)?.status).toBe('complete');
    expect(new Set(seen.flatMap((view) => view.completed_at ?? []))).toEqual(
      new Set([completed_at]),
    );
  }
});

test('a run commits nothing, and leaves branch and index of the user as they were', async () => {
  const root = temporaryFolder();
  const git = async (...args: readonly string[]) =>
    (await execa('git', ['-c', 'user.name=me', '-c', 'user.email=me@here', ...args], { cwd: root }))
      .stdout;
  await git('init', '--quiet', '--initial-branch=mine');
  writeFileSync(join(root, 'staged'), 'staged');
  await git('commit', '--quiet', '--allow-empty', '--message=first');
  await git('add', 'staged');
  const state = async () => [
    await git('log', '--all', '--format=%H %D'),
    await git('branch', '--all', '--show-current'),
    await git('diff', '--cached', '--name-only'),
    await git('stash', 'list'),
  ];
  const before = await state();
  const write = { calls: [{ tool: 'write', arguments: { path: 'made', content: 'x' } }] };
  const running = await startSystem({ root, turns: [write, bash('echo more > more'), finish()] });
  const id = await newTask(running);
  await run(running, id);

  await untilStatus(running, id, 'complete');

  expect(await state()).toEqual(before);
  expect((await git('status', '--porcelain')).split('\n')).toEqual(
    expect.arrayContaining(['A  staged', '?? made', '?? more']),
  );
});

test.each(['cancelled', 'complete'] as const)(
  'a task that is %s before its next attempt began has no time of work, also not that of the last one',
  async (status) => {
    const running = await startSystem({ turns: [finish()] });
    const id = await newTask(running);
    await run(running, id);
    await untilStatus(running, id, 'complete');
    await running.service.reopen(id, null);

    await running.service[status === 'cancelled' ? 'cancel' : 'close'](id, null);

    const view = await untilStatus(running, id, status);
    expect(view.started_at).toBeUndefined();
    const { data } = running.store.latest(id, status === 'cancelled' ? status : 'completed') ?? {};
    expect(JSON.parse(data ?? '{}')).toMatchObject({ execution_seconds: 0 });
  },
);
