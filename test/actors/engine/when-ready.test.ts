import { expect, test, vi } from 'vitest';
import { crash } from '../../support/crash.ts';
import { embeddedAt, somebodyElse, writingItself } from '../../support/ledger.ts';
import {
  finish,
  hang,
  type Running,
  type Setting,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

/** A run with `when: 'ready'` waits for its dependencies, and starts by itself. */

const create = async ({ service }: Running, ...dependencies: readonly string[]) =>
  (await service.create({ description: 'a task', dependencies })).task_id;
const runWhenReady = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: { when: 'ready' } });
const runNow = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });
const isPending = ({ store }: Running, id: string) => store.actor(id)?.pending === true;
const untilWoken = (running: Running, id: string) =>
  vi.waitFor(async () => expect((await running.service.status(id)).attempt).toBe(1));

const waiting = async (setting: Setting = { turns: [finish()] }) => {
  const running = await startSystem(setting);
  const first = await create(running);
  const second = await create(running, first);
  const accepted = await runWhenReady(running, second);
  return { running, first, second, accepted };
};

/** What changes now is not seen by the look of a new wait. */
const waitingSinceLook = async () => {
  let looks = 0;
  const found = await waiting({
    turns: [finish()],
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      return {
        ...tracker,
        findMany: async (ids) => {
          const tasks = await tracker.findMany(ids);
          looks += 1;
          return tasks;
        },
      };
    },
  });
  await vi.waitFor(() => expect(looks).toBe(1));
  return found;
};

test('a run that waits is accepted, and starts when its last dependency completes', async () => {
  const running = await startSystem({ turns: [finish()] });
  const [one, other] = [await create(running), await create(running)];
  const task = await create(running, one, other);

  const accepted = await runWhenReady(running, task);
  await runNow(running, one);
  await untilStatus(running, one, 'complete');
  const between = await running.service.status(task);
  await runNow(running, other);

  expect(accepted).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_dependencies',
    attempt: 1,
  });
  expect(between).toMatchObject({ phase: 'waiting_for_dependencies', attempt: 0 });
  expect(await untilStatus(running, task, 'complete')).toMatchObject({ attempt: 1 });
});

test('the frames of a run that waits say what it still waits for', async () => {
  const running = await startSystem({ turns: [finish()] });
  const [one, other] = [await create(running), await create(running)];
  const task = await create(running, one, other);
  await runWhenReady(running, task);

  await running.service.close(one, null);

  await vi.waitFor(() => {
    const { data } = running.store.latest(task, 'snapshot') ?? { data: '{}' };
    expect(JSON.parse(data)).toMatchObject({
      tags: expect.arrayContaining(['pending']),
      task: { phase: 'waiting_for_dependencies', unmet_dependencies: [other] },
    });
  });
  await running.service.close(other, null);
  await untilStatus(running, task, 'complete');
});

test('a run whose dependencies are complete starts at once', async () => {
  const running = await startSystem({ turns: [finish()] });
  const task = await create(running);

  await runWhenReady(running, task);

  expect(await untilStatus(running, task, 'complete')).toMatchObject({ attempt: 1 });
});

test('without the option a run with an open dependency is refused as before', async () => {
  const running = await startSystem({});
  const task = await create(running, await create(running));

  await expect(runNow(running, task)).rejects.toMatchObject({ code: 'dependencies_unmet' });
});

test('a run that waits under the cap takes its place in the queue', async () => {
  const { running, first, second } = await waiting({ turns: [hang], options: { cap: 1 } });
  const busy = await create(running);
  await runNow(running, busy);
  await untilStatus(running, busy, 'started');

  await running.service.close(first, null);

  await vi.waitFor(async () =>
    expect((await running.service.status(second)).phase).toBe('waiting_for_slot'),
  );
  await running.service.cancel(busy, null);
  await untilStatus(running, second, 'started');
});

test('a task that waits when a server dies waits in the next one, and starts there', async () => {
  const setting: Setting = { turns: [finish()] };
  const { running, first, second } = await waiting(setting);

  const next = await startSystem(await crash(running, setting));
  const restored = await next.service.status(second);
  await runNow(next, first);

  expect(restored).toMatchObject({ status: 'queued', phase: 'waiting_for_dependencies' });
  expect(await untilStatus(next, second, 'complete')).toMatchObject({ attempt: 1 });
});

test('a dependency that was closed while no server ran starts its dependent', async () => {
  const setting: Setting = { turns: [finish()] };
  const { running, first, second } = await waiting(setting);
  const saved = await crash(running, setting);

  const next = await startSystem({
    ...saved,
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      let closed: Promise<unknown> | null = null;
      const afterClose = async () => {
        closed ??= tracker.close(first as never, 'by hand');
        await closed;
      };
      return {
        ...tracker,
        findMany: async (ids) => {
          await afterClose();
          return tracker.findMany(ids);
        },
      };
    },
  });

  expect(await untilStatus(next, second, 'complete')).toMatchObject({ attempt: 1 });
});

test('a run that waits is cancelled', async () => {
  const { running, first, second } = await waiting();

  await running.service.cancel(second, 'not now');
  await running.service.close(first, null);

  expect(await untilStatus(running, second, 'cancelled')).toMatchObject({ attempt: 0 });
  expect(isPending(running, second)).toBe(false);
});

test('a dependency that is completed by hand starts its dependent', async () => {
  const { running, first, second } = await waiting();

  await running.service.close(first, 'I did it');

  await untilStatus(running, second, 'complete');
});

test('a dependency that somebody closes in the tracker starts its dependent', async () => {
  const { running, first, second } = await waitingSinceLook();
  const amy = somebodyElse(running.root, 'amy', running.ledger);

  await amy.close(first as never, 'I did it');

  await untilStatus(running, second, 'complete');
});

test('a dependency that is removed starts its dependent', async () => {
  const { running, first, second } = await waitingSinceLook();

  await running.service.removeDependency(second, first);

  await untilStatus(running, second, 'complete');
});

test('a dependency that is added is waited for as well', async () => {
  const { running, first, second } = await waiting();
  const third = await create(running);
  await running.service.addDependency(second, third);

  await running.service.close(first, null);
  const between = await running.service.status(second);
  await running.service.close(third, null);

  expect(between).toMatchObject({ attempt: 0, unmet_dependencies: [third] });
  await untilStatus(running, second, 'complete');
});

test('a dependency that is reopened before the last one completes is waited for again', async () => {
  const running = await startSystem({ turns: [finish()] });
  const [one, other] = [await create(running), await create(running)];
  const task = await create(running, one, other);
  await runWhenReady(running, task);

  await running.service.close(one, null);
  await running.service.reopen(one, null);
  await running.service.close(other, null);
  await vi.waitFor(async () =>
    expect(await running.service.status(task)).toMatchObject({
      phase: 'waiting_for_dependencies',
      unmet_dependencies: [one],
    }),
  );
  await running.service.close(one, null);

  await untilStatus(running, task, 'complete');
});

test('by default a task goes on waiting for a dependency that failed, and says what to do', async () => {
  const { running, first, second } = await waiting({ turns: [finish('no luck', 'failed')] });

  await runNow(running, first);
  await untilStatus(running, first, 'failed');

  const { phase } = await running.service.status(second);
  const { reason } = await running.service.explain(second);
  expect(phase).toBe('waiting_for_dependencies');
  expect(reason).toContain(`${first} (failed: the agent gave up: no luck`);
  expect(reason).toContain(`agent retry ${first}`);
  await vi.waitFor(async () => {
    const { entries } = await running.service.history({ taskId: second });
    expect(JSON.stringify(entries)).toContain(`it depends on ${first}, which failed`);
  });
});

test('a dependency that failed and then completes starts its dependent', async () => {
  const { running, first, second } = await waiting({ turns: [finish('no luck', 'failed')] });
  await runNow(running, first);
  await untilStatus(running, first, 'failed');

  await running.service.close(first, 'mended by hand');

  await untilWoken(running, second);
});

test.each(['failed', 'cancelled'] as const)(
  'by policy a waiting task fails with a dependency that is %s, and so do its own dependents',
  async (status) => {
    const { running, first, second } = await waiting({
      turns: [status === 'failed' ? finish('no luck', 'failed') : hang],
      options: { onDependencyFailure: 'fail' },
    });
    const third = await create(running, second);
    await runWhenReady(running, third);

    await runNow(running, first);
    await untilStatus(running, first, 'started', 'failed');
    if (status === 'cancelled') await running.service.cancel(first, 'enough');

    const failed = await untilStatus(running, second, 'failed');
    expect(failed.error?.message).toContain(
      status === 'failed'
        ? `it depends on ${first}, which failed: the agent gave up: no luck`
        : `it depends on ${first}, which was cancelled: enough`,
    );
    expect((await untilStatus(running, third, 'failed')).error?.message).toContain(
      `it depends on ${second}, which failed`,
    );
  },
);

test('by policy a task that begins to wait for a failed dependency fails', async () => {
  const running = await startSystem({
    turns: [finish('no luck', 'failed')],
    options: { onDependencyFailure: 'fail' },
  });
  const first = await create(running);
  await runNow(running, first);
  await untilStatus(running, first, 'failed');
  const second = await create(running, first);

  await runWhenReady(running, second);

  expect((await untilStatus(running, second, 'failed')).error?.message).toContain(first);
});

test('a tracker that is away when the dependencies complete only delays the start', async () => {
  let isAway = false;
  const { running, first, second } = await waiting({
    turns: [finish()],
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      const unlessAway = <Result>(ask: () => Promise<Result>): Promise<Result> =>
        isAway ? Promise.reject(new Error('the tracker is away')) : ask();
      return {
        ...tracker,
        find: (id) => unlessAway(() => tracker.find(id)),
        findMany: (ids) => unlessAway(() => tracker.findMany(ids)),
      };
    },
  });
  const messages: unknown[] = [];
  running.system.journal.onCommit((entries) => {
    for (const { taskId, type, data } of entries)
      if (taskId === second && type === 'snapshot') messages.push(JSON.parse(data).value);
    // From the moment at which the first task is complete.
    if (entries.some(({ taskId, type }) => taskId === first && type === 'completed')) isAway = true;
  });

  await running.service.close(first, null).catch(() => {});
  await vi.waitFor(() => expect(messages).toContainEqual({ queued: 'checking' }));
  isAway = false;

  await untilStatus(running, second, 'complete');
});

test('a tracker that writes by itself starts dependents too', async () => {
  const { running, first, second } = await waiting({
    turns: [finish()],
    tracker: (root, ledger) => writingItself(embeddedAt(root, {}, ledger)),
  });

  await runNow(running, first);

  await untilStatus(running, second, 'complete');
});

test('a repeated request finds the run that waits', async () => {
  const running = await startSystem({ turns: [finish()] });
  const task = await create(running, await create(running));
  const request = { task, role: 'engineer', options: { when: 'ready' }, requestId: 'r1' } as const;

  // As when a server dies between the commit of the run and that of its answer.
  const remember = vi
    .spyOn(running.store, 'rememberAnswer')
    .mockImplementation((_request, _task, answer) => answer);
  const first = await running.service.execute(request);
  remember.mockRestore();
  const again = await running.service.execute(request);

  expect(again).toEqual(first);
});

test('one end among 200 waiting tasks reads only the tasks that it concerns', {
  tags: ['slow'],
}, async () => {
  let reads = 0;
  const running = await startSystem({
    turns: [finish()],
    options: { cap: 0 },
    tracker: (root, ledger) => {
      const tracker = embeddedAt(root, {}, ledger);
      return {
        ...tracker,
        find: (id) => {
          reads += 1;
          return tracker.find(id);
        },
        list: () => Promise.reject(new Error('a list of all tasks')),
      };
    },
  });
  const others = await create(running);
  for (let n = 0; n < 200; n += 1) await runWhenReady(running, await create(running, others));
  const first = await create(running);
  const second = await create(running, first);
  await runWhenReady(running, second);
  reads = 0;

  await running.service.close(first, null);
  await vi.waitFor(async () =>
    expect((await running.service.status(second)).phase).toBe('waiting_for_slot'),
  );

  expect(reads).toBeLessThan(40);
});
