import { expect, test, vi } from 'vitest';
import { createRunGraph } from '../../../src/actors/engine/service/run-graph.ts';
import { createTaskViews } from '../../../src/actors/engine/tasks/loaded-tasks.ts';
import { OwnedElsewhereError } from '../../../src/actors/engine/tasks/owned-elsewhere.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { crash } from '../../support/crash.ts';
import { embeddedAt } from '../../support/ledger.ts';
import {
  finish,
  hang,
  type Running,
  type Setting,
  startServer,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

/** Method `run`: tasks with all that they depend on, each when its dependencies are complete. */

const create = async (
  { service }: Running,
  dependencies: readonly string[] = [],
  labels: readonly string[] = ['role:engineer'],
  priority = 2,
) => (await service.create({ description: 'a task', dependencies, labels, priority })).task_id;
const runAll = ({ service }: Running, ...taskIds: readonly string[]) =>
  service.run({ options: {}, ...(taskIds.length === 0 ? {} : { taskIds }) });
const idsOf = (list: readonly { readonly task_id: string }[]) =>
  list.map(({ task_id }) => task_id).toSorted();
const completed = (running: Running, ids: readonly string[]) =>
  Promise.all(ids.map((id) => untilStatus(running, id, 'complete')));
/** The order in which tasks got a slot. */
const starts = ({ system }: Running): readonly string[] => {
  const order: string[] = [];
  system.journal.onCommit((entries) => {
    for (const { type, taskId, data } of entries)
      if (type === 'status_update' && JSON.parse(data).status === 'started')
        if (!order.includes(taskId)) order.push(taskId);
  });
  return order;
};

test('a diamond runs in the order of its dependencies, each task once', async () => {
  const running = await startSystem({ turns: [finish()] });
  const top = await create(running);
  const [left, right] = [await create(running, [top]), await create(running, [top])];
  const bottom = await create(running, [left, right]);
  const order = starts(running);

  const { accepted, skipped } = await runAll(running, bottom);
  await completed(running, [bottom]);

  expect(idsOf(accepted)).toEqual([top, left, right, bottom].toSorted());
  expect(accepted.find(({ task_id }) => task_id === bottom)).toEqual({
    task_id: bottom,
    role: 'engineer',
    phase: 'waiting_for_dependencies',
  });
  expect(skipped).toEqual([]);
  expect([order[0], order[3], order.length]).toEqual([top, bottom, 4]);
  for (const id of [top, left, right, bottom])
    expect((await running.service.status(id)).attempt).toBe(1);
});

test('without ids every open task runs, also those that failed or were cancelled', async () => {
  const running = await startSystem({ turns: [finish()] });
  const [one, closed, stopped] = [
    await create(running),
    await create(running),
    await create(running),
  ];
  await running.service.close(closed, null);
  await running.service.cancel(stopped, null);

  const { accepted, skipped } = await runAll(running);

  expect(idsOf(accepted)).toEqual([one, stopped].toSorted());
  expect(skipped).toEqual([]);
  await completed(running, [one, stopped]);
});

test('a fan of 100 tasks runs after the one that they depend on', {
  tags: ['slow'],
}, async () => {
  const running = await startSystem({ turns: [finish()], options: { cap: 8, queueLimit: 200 } });
  const first = await create(running);
  const fan: string[] = [];
  for (let n = 0; n < 100; n += 1) fan.push(await create(running, [first]));
  const order = starts(running);

  const { accepted } = await runAll(running);
  await completed(running, fan);

  expect(accepted).toHaveLength(101);
  expect(order[0]).toBe(first);
  expect((await running.system.counters()).spawned).toBe(101);
});

test('tasks on a cycle, and behind it, are skipped by name, and the others run', async () => {
  const running = await startSystem({ turns: [finish()] });
  const [one, other] = [await create(running), await create(running)];
  const behind = await create(running, [one]);
  const apart = await create(running);
  await running.service.addDependency(one, other);
  // The tracker refuses cycles; a file of another program may hold one.
  const { db, table } = running.ledger;
  const line = (await db.ask(table.stored(other)))?.line ?? '';
  const issue = JSON.parse(line);
  await db.write(() =>
    table.put({
      ...issue,
      dependencies: [{ issue_id: other, depends_on_id: one, type: 'blocks' }],
    }),
  );

  const { accepted, skipped } = await runAll(running);

  expect(idsOf(accepted)).toEqual([apart]);
  expect(idsOf(skipped)).toEqual([one, other, behind].toSorted());
  const reasonOf = (id: string) => skipped.find(({ task_id }) => task_id === id)?.reason;
  expect(reasonOf(one)).toMatch(/^its dependencies form a cycle: bd-\w+ -> bd-\w+ -> bd-\w+;/);
  expect(reasonOf(behind)).toMatch(/^it waits for a cycle of dependencies/);
});

test('the role is that of the label, else of the last run, else of the request', async () => {
  const running = await startSystem({ turns: [finish('no', 'failed')] });
  const labelled = await create(running, [], ['role:architect']);
  const ranBefore = await create(running, [], []);
  const fresh = await create(running, [], []);
  await running.service.execute({ task: ranBefore, role: 'tester', options: {} });
  await untilStatus(running, ranBefore, 'failed');

  const { accepted } = await running.service.run({ options: {}, role: 'reviewer' });

  expect(Object.fromEntries(accepted.map(({ task_id, role }) => [task_id, role]))).toEqual({
    [labelled]: 'architect',
    [ranBefore]: 'tester',
    [fresh]: 'reviewer',
  });
});

test('a task that failed a verify command does not complete in a run that names none', async () => {
  const running = await startSystem({ turns: [finish()] });
  const id = await create(running);
  await running.service.run({ taskIds: [id], options: { verify: ['false'], maxTurns: 7 } });
  await untilStatus(running, id, 'failed');

  await runAll(running);
  await vi.waitFor(async () =>
    expect(await running.service.status(id)).toMatchObject({
      attempt: 2,
      status: 'failed',
      error: { code: 'verify_failed' },
    }),
  );
  await running.service.run({ taskIds: [id], options: { verify: ['true'] } });
  await completed(running, [id]);
});

test('a task without a role is skipped, and its dependents wait until it is complete', async () => {
  const running = await startSystem({ turns: [finish()] });
  const noRole = await create(running, [], []);
  const badRole = await create(running, [], ['role:pilot']);
  const dependent = await create(running, [noRole]);

  const { accepted, skipped } = await runAll(running);
  await running.service.close(noRole, 'by hand');

  expect(idsOf(accepted)).toEqual([dependent]);
  expect(skipped).toEqual(
    expect.arrayContaining([
      {
        task_id: noRole,
        reason: expect.stringMatching(
          /^it has no role; .*agent edit \S+ --role engineer, or all of them: agent run --role engineer$/,
        ),
        code: 'no_role',
      },
      {
        task_id: badRole,
        reason: expect.stringContaining('unknown role "pilot"'),
        code: 'role_unknown',
      },
    ]),
  );
  await completed(running, [dependent]);
});

test('two runs at once start each task once; the other run says that it is running', async () => {
  const running = await startSystem({ turns: [finish()] });
  const first = await create(running);
  const second = await create(running, [first]);

  const [one, other] = await Promise.all([runAll(running), runAll(running)]);
  await completed(running, [second]);

  expect(idsOf([...one.accepted, ...other.accepted])).toEqual([first, second].toSorted());
  for (const { reason } of [...one.skipped, ...other.skipped])
    expect(reason).toMatch(/already running as attempt 1/);
  expect((await running.service.status(second)).attempt).toBe(1);
});

test('a task that is added during a run is waited for, and is started by the next run', async () => {
  const running = await startSystem({ turns: [finish()] });
  const first = await create(running);
  const second = await create(running, [first]);
  running.system.reconfigure({ ...running.system.settings(), cap: 0 });
  await runAll(running);
  const added = await create(running);
  await running.service.addDependency(second, added);
  running.system.reconfigure({ ...running.system.settings(), cap: 3 });
  await completed(running, [first]);

  const { phase } = await running.service.status(second);
  const next = await runAll(running);
  await completed(running, [added, second]);

  expect(phase).toBe('waiting_for_dependencies');
  expect(idsOf(next.accepted)).toEqual([added]);
});

test('a failed dependency of a named task is run again, its dependents after it', async () => {
  const turns = [finish('no', 'failed')];
  const running = await startSystem({ turns, options: { onDependencyFailure: 'fail' } });
  const first = await create(running);
  await runAll(running, first);
  await untilStatus(running, first, 'failed');
  const second = await create(running, [first]);

  const { accepted } = await runAll(running, second);

  expect(idsOf(accepted)).toEqual([first, second].toSorted());
  expect(await untilStatus(running, second, 'failed')).toMatchObject({ attempt: 0 });
  expect(await running.service.status(first)).toMatchObject({ status: 'failed', attempt: 2 });
});

test('a complete task is skipped, an unknown one refuses the run', async () => {
  const running = await startSystem({});
  const done = await create(running);
  await running.service.close(done, null);

  expect(await runAll(running, done)).toEqual({
    accepted: [],
    skipped: [
      { task_id: done, reason: expect.stringContaining(`agent reopen ${done}`), code: 'complete' },
    ],
  });
  await expect(runAll(running, 'bd-none')).rejects.toMatchObject({ code: 'task_not_found' });
});

test('a repeated request gets the first answer, also from a server that did not see its end', async () => {
  const setting: Setting = { turns: [hang] };
  const running = await startSystem(setting);
  const first = await create(running);
  const second = await create(running, [first]);
  const request = { options: {}, requestId: 'r1' };
  // Between the last start and the answer.
  const remember = vi
    .spyOn(running.store, 'rememberAnswer')
    .mockImplementation((_request, _task, answer) => answer);
  const answer = await running.service.run(request);
  remember.mockRestore();

  const next = await startSystem(await crash(running, setting));
  const again = await next.service.run(request);
  const third = await next.service.run(request);

  expect(idsOf(again.accepted)).toEqual(idsOf(answer.accepted));
  expect(again.skipped).toEqual([]);
  expect(third).toEqual(again);
  await next.service.cancel(first, null);
  expect((await next.service.status(second)).attempt).toBe(0);
});

test('more tasks than the queue takes are skipped', async () => {
  const running = await startSystem({ options: { queueLimit: 2, cap: 0 } });
  for (let n = 0; n < 4; n += 1) await create(running);

  const { accepted, skipped } = await runAll(running);

  expect(accepted).toHaveLength(2);
  expect(skipped.map(({ reason }) => reason)).toEqual([
    'the queue is full (2 tasks)',
    'the queue is full (2 tasks)',
  ]);
});

test('a run among 20,000 closed tasks reads only the open ones', {
  tags: ['slow'],
}, async () => {
  let rows = 0;
  const running = await startSystem({
    turns: [finish()],
    options: { cap: 0 },
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      return {
        ...tracker,
        list: () => Promise.reject(new Error('a list of all tasks')),
        page: async (request) => {
          const page = await tracker.page(request);
          rows += page.length;
          return page;
        },
      };
    },
  });
  const one = await create(running);
  const { db, table } = running.ledger;
  const issue = JSON.parse((await db.ask(table.stored(one)))?.line ?? '');
  await db.write(function* () {
    for (let n = 0; n < 20_000; n += 1)
      yield* table.put({ ...issue, id: `bd-x${n}` as TaskId, status: 'closed' });
  });
  rows = 0;

  const { accepted } = await runAll(running);

  expect(idsOf(accepted)).toEqual([one]);
  expect(rows).toBeLessThan(10);
});

test('over HTTP the method run takes ids, a role and options, and refuses what is none', async () => {
  const server = await startServer({ turns: [finish()] });
  const id = await create(server, [], []);

  const { result } = await server.call('run', {
    task_ids: [id],
    role: 'tester',
    options: { max_turns: 3 },
    request_id: 'r',
  });
  const wrong = await server.call('a2a.run', { task_ids: [], role: 'pilot', when: 'ready' });

  expect(result).toEqual({
    accepted: [{ task_id: id, role: 'tester', phase: expect.any(String) }],
    skipped: [],
  });
  expect(wrong.error.data.code).toBe('invalid_params');
  expect((await server.call('run', { role: 'pilot' })).error.data.code).toBe('role_unknown');
  await untilStatus(server, id, 'complete');
});

/** Another server of the same store and tracker, which has no task of its own. */
const runElsewhere = ({ store, tracker }: Running) => {
  const views = createTaskViews({ store, now: Date.now, live: () => null });
  const ask = async (): Promise<never> => {
    throw new OwnedElsewhereError('the-first-server');
  };
  return createRunGraph({
    ...{ store, tracker, views, commands: { ask } },
    requirePrice: async () => {},
    requireNetwork: () => {},
    optionsFor: (options) => options,
    withRun: (options) => options,
    modelOf: () => 'scripted',
    maxRetries: () => 0,
    queueLimit: () => 100,
    pendingCount: async () => 1,
  });
};

test('a task at work on another server is skipped, as one of this server is', async () => {
  const running = await startSystem({ turns: [hang] });
  const id = await create(running);
  await runAll(running, id);
  await untilStatus(running, id, 'started');
  const [here] = (await runAll(running, id)).skipped;

  const { accepted, skipped } = await runElsewhere(running).run({ taskIds: [id], options: {} });

  expect(here?.code).toBe('already_running');
  expect(skipped).toEqual([here]);
  expect(accepted).toEqual([]);
});

test('a task that ended on another server meanwhile is skipped, with what to do', async () => {
  const running = await startSystem({ turns: [hang] });
  const id = await create(running);

  const { skipped } = await runElsewhere(running).run({ taskIds: [id], options: {} });

  expect(skipped).toEqual([
    {
      task_id: id,
      reason:
        'internal error: the task is with the server the-first-server now; try again; the server log has the details',
      code: 'internal',
    },
  ]);
});

test('a plan names the tasks in the order in which they start', async () => {
  const running = await startSystem({ turns: [finish()], options: { cap: 1 } });
  const make = async (priority: number, dependencies: readonly string[] = []) =>
    (
      await running.service.create({
        ...{ description: 'a task', labels: ['role:engineer'] },
        ...{ priority, dependencies },
      })
    ).task_id;
  const [late, third, first, second] = [await make(4), await make(3), await make(1), await make(2)];
  const urgent = await make(0, [second]);
  const order = starts(running);

  const { tasks } = await running.service.plan({ options: {} });
  await runAll(running);
  await completed(running, [late, third, first, second, urgent]);

  expect(tasks.map(({ task_id }) => task_id)).toEqual([first, second, third, urgent, late]);
  expect(order).toEqual([first, second, third, urgent, late]);
});

test('a limit asks for few tasks of a long chain whose end is urgent', async () => {
  const running = await startSystem({ turns: [finish()] });
  const ids: string[] = [];
  for (let n = 0; n < 60; n += 1)
    ids.push(await create(running, ids.slice(-1), ['role:engineer'], n < 30 ? 4 : 0));
  const asked = vi.spyOn(running.store, 'actor');

  const { tasks } = await running.service.plan({ options: {}, limit: 2 });

  expect(tasks.map(({ task_id }) => task_id)).toEqual(ids.slice(0, 2));
  expect(asked.mock.calls.length).toBeLessThan(150);
});

test('a limit counts only tasks that start', async () => {
  const running = await startSystem({ turns: [finish()] });
  const unready = await create(running, [], []);
  const ids = [await create(running), await create(running)];

  const { accepted, skipped } = await running.service.run({ options: {}, limit: 2 });

  expect(idsOf(accepted)).toEqual(ids.toSorted());
  expect(skipped).toMatchObject([{ task_id: unready, code: 'no_role' }]);
});
