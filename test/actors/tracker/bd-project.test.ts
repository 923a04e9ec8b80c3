import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { bdIn, bdTracker, type Fault, inBd, makeBd, makeBdProject } from '../../support/bd.ts';
import {
  finish,
  hang,
  type Running,
  type Setting,
  startServer,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

/** A running system on a project that keeps its tasks in bd, with one task in it. */
const open = async (setting: Setting = {}) => {
  const bd = makeBd('A-direct');
  const root = await makeBdProject(bd);
  const running = await startSystem({
    turns: [finish()],
    ...setting,
    root,
    tracker: bdTracker(bd),
  });
  const { task_id } = await running.service.create({ description: 'a task' });
  return { bd, root, running, id: task_id, service: running.service };
};

const untilPhase = ({ service }: Running, id: string, phase: string) =>
  vi.waitFor(
    async () => {
      const view = await service.status(id);
      expect(view.phase).toBe(phase);
      return view;
    },
    { interval: 50 },
  );

const execute = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });

test('a run of a bd task claims and closes it in bd', async () => {
  const { bd, root, running, id } = await open();

  await execute(running, id);
  const view = await untilStatus(running, id, 'complete');

  expect(view).toMatchObject({ status: 'complete', result: 'done' });
  expect(await inBd(bd, root, id)).toMatchObject({
    status: 'closed',
    assignee: 'agent-server',
    close_reason: 'Completed by agent-server (role: engineer)',
  });
  expect(existsSync(join(root, '.beads', 'issues.jsonl'))).toBe(false);
});

test('starting a run is at most four calls of bd', async () => {
  const { bd, running, id } = await open({ turns: [hang] });
  const before = bd.calls().length;

  await execute(running, id);
  // Not by its status: that asks bd, too.
  await vi.waitFor(() => expect(running.store.latest(id, 'tool_start')).not.toBeNull(), {
    interval: 50,
  });

  const commands = bd
    .calls()
    .slice(before)
    .map(({ argv }) => argv[0])
    .filter((command) => command !== 'list' && command !== 'ready');
  expect(commands).toEqual(['show', 'blocked', 'start', 'update'].slice(4 - commands.length));
});

test.each([
  ['complete', finish('all well'), 'Attempt 1 (engineer) is done\n\nall well'],
  ['failed', finish('could not', 'failed'), 'Attempt 1 (engineer) failed: '],
])('with tracker.notes an attempt that is %s leaves a comment', async (status, turn, words) => {
  const { root, running, id } = await open({ turns: [turn], options: { notes: true } });

  await execute(running, id);
  await untilStatus(running, id, status);

  const { comments } = JSON.parse(readFileSync(join(root, '.beads', 'beads.db'), 'utf8'));
  expect(comments).toMatchObject([{ issue_id: id, text: expect.stringContaining(words) }]);
  expect(comments[0].text).toContain(`Results: .beads/tasks/task-${id}/30-results.md`);
});

const down: Fault = {
  kind: 'says',
  stderr: 'Error: Dolt server appears down\n',
  code: 1,
  times: 1_000,
};

test.each<[string, Fault, string]>([
  ['its claim', { ...down, on: 'update' }, 'complete'],
  ['its end', { ...down, on: 'close' }, 'complete'],
])(
  'while bd is away a run waits with %s, says so, and goes on',
  { tags: ['slow'] },
  async (_, fault, end) => {
    const { bd, root, running, id } = await open();
    bd.fail(fault);

    await execute(running, id);
    const waiting = await untilPhase(running, id, 'waiting_for_tracker');
    bd.fail();
    await untilStatus(running, id, end);

    expect(waiting).toMatchObject({ status: 'started', error: { code: 'tracker_unavailable' } });
    expect(waiting.error?.message).toMatch(/server appears down; start the database server/);
    expect(await inBd(bd, root, id)).toMatchObject({ status: 'closed' });
    expect(await running.service.status(id)).not.toHaveProperty('error');
  },
);

test('a run while bd is unavailable is refused by name, and nothing starts', {
  tags: ['slow'],
}, async () => {
  const { bd, root, running, id } = await open();
  await running.stop();
  bd.fail({ ...down, on: 'show' });
  const next = await startSystem({
    turns: [hang],
    root,
    stateDir: running.stateDir,
    tracker: bdTracker(bd),
  });

  const refused = execute(next, id);

  await expect(refused).rejects.toMatchObject({
    code: 'tracker_unavailable',
    message: expect.stringContaining('server appears down'),
  });
  expect(next.store.latest(id, 'tool_start')).toBeNull();
  expect(next.system.slotUse()).toMatchObject({ running: 0, waiting: 0 });
  bd.fail();
  expect(await inBd(bd, root, id)).toMatchObject({ status: 'open' });
});

test('changes during an outage of bd are recorded, and reach bd when it is back', {
  tags: ['slow'],
}, async () => {
  const waits = { tool: 'bash', arguments: { command: 'until [ -e go ]; do sleep 0.05; done' } };
  const { bd, root, running, id } = await open({
    turns: [{ calls: [waits] }, finish('all of it')],
  });
  await execute(running, id);
  await untilPhase(running, id, 'acting');

  renameSync(bd.path, `${bd.path}.away`);
  writeFileSync(join(root, 'go'), '');
  const waiting = await untilPhase(running, id, 'waiting_for_tracker');
  renameSync(`${bd.path}.away`, bd.path);
  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(waiting.error?.message).toContain('bd is not there');
  expect(view).toMatchObject({ status: 'complete', result: 'all of it' });
  expect(await inBd(bd, root, id)).toMatchObject({ status: 'closed' });
  expect(readFileSync(join(root, view.results_path as string), 'utf8')).toContain('all of it');
});

test('a failed attempt releases its task when bd is back, also after a restart', {
  tags: ['slow'],
}, async () => {
  const waits = { tool: 'bash', arguments: { command: 'until [ -e go ]; do sleep 0.05; done' } };
  const { bd, root, running, id } = await open({
    turns: [{ calls: [waits] }, finish('could not', 'failed')],
  });
  await execute(running, id);
  await untilPhase(running, id, 'acting');
  bd.fail({ ...down, on: 'update' });
  writeFileSync(join(root, 'go'), '');
  await untilPhase(running, id, 'waiting_for_tracker');

  await running.stop();
  bd.fail();
  const next = await startSystem({ root, stateDir: running.stateDir, tracker: bdTracker(bd) });

  expect(await untilStatus(next, id, 'failed')).toMatchObject({
    status: 'failed',
    labels: ['agent-failed'],
  });
  expect(await inBd(bd, root, id)).toMatchObject({ status: 'open', labels: ['agent-failed'] });
});

test('an attempt whose task a person closes stops, and its work is kept', {
  tags: ['slow'],
}, async () => {
  const { bd, root, running, id } = await open({ turns: [hang] });
  await execute(running, id);
  await untilPhase(running, id, 'acting');
  const pid = await vi.waitFor(() => Number(readFileSync(join(root, 'pid'), 'utf8')));

  await bdIn(bd, root, 'close', '--reason=done by hand', '--', id);
  const view = await untilStatus(running, id, 'complete');

  expect(view).toMatchObject({ status: 'complete', attempt: 1, results_path: expect.any(String) });
  expect(() => process.kill(pid, 0)).toThrow();
  expect(readFileSync(join(root, view.results_path as string), 'utf8')).toContain(
    'somebody closed the task',
  );
  expect(await inBd(bd, root, id)).toMatchObject({
    status: 'closed',
    close_reason: 'done by hand',
  });
});

test('an attempt whose task somebody takes stops, and names the holder', {
  tags: ['slow'],
}, async () => {
  const { bd, root, running, id } = await open({ turns: [hang] });
  await execute(running, id);
  await untilPhase(running, id, 'acting');

  await bdIn(bd, root, 'update', '--assignee=amy', '--', id);
  const view = await vi.waitFor(async () => {
    const now = await running.service.status(id);
    expect(now.error).toMatchObject({ code: 'tracker_conflict', facts: { holder: 'amy' } });
    return now;
  });

  expect(view.status).toBe('started');
  expect(running.system.slotUse().running).toBe(0);
  expect(view.phase).toBe('started');
  expect(await inBd(bd, root, id)).toMatchObject({ status: 'in_progress', assignee: 'amy' });
});

test('a task with another holder is refused by name, and a bad id never reaches bd', async () => {
  const { bd, root, running, id } = await open();
  await bdIn(bd, root, 'update', '--claim', '--actor=amy', '--', id);
  await vi.waitFor(async () => expect((await running.service.status(id)).status).toBe('started'));

  await expect(execute(running, id)).rejects.toMatchObject({
    code: 'tracker_conflict',
    facts: { holder: 'amy' },
  });
  for (const bad of ['--help', '..', 'bd-..', 'null', '', 'bd', '-x-y', 'a\0-b'])
    await expect(running.service.status(bad)).rejects.toMatchObject({
      code: /task_not_found|invalid_params/,
    });

  const asked = bd.calls().flatMap(({ argv }) => argv.slice(argv.indexOf('--') + 1));
  for (const bad of ['--help', '..', 'bd-..', 'null', 'bd', '-x-y'])
    expect(asked).not.toContain(bad);
});

test('changes that people make with bd show in the list and on the stream within five seconds', {
  tags: ['slow'],
}, async () => {
  const bd = makeBd('A-direct');
  const root = await makeBdProject(bd);
  const running = await startServer({ root, tracker: bdTracker(bd) });
  const { task_id: first } = await running.service.create({ description: 'first' });
  const { task_id: second } = await running.service.create({ description: 'second' });
  const abort = new AbortController();
  const response = await fetch(`${running.base}/stream`, {
    headers: running.headers,
    signal: abort.signal,
  });
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>)
      text += Buffer.from(chunk);
  })().catch(() => {});
  const seen = (pattern: RegExp) =>
    vi.waitFor(() => expect(text).toMatch(pattern), { interval: 50 });
  const queued = async () =>
    (await running.service.list({ status: 'queued' })).tasks.map(({ task_id }) => task_id);
  await new Promise((resolve) => setTimeout(resolve, 1_000));

  await bdIn(bd, root, 'dep', 'add', '--', second, first);
  await seen(new RegExp(`"task_id":"${second}"[^\\n]*"waiting_for_dependencies"`));
  expect(await queued()).toEqual([first]);

  await bdIn(bd, root, 'close', '--reason=by hand', '--', first);
  await seen(new RegExp(`"task_id":"${first}"[^\\n]*"status":"complete"`));
  expect(await queued()).toEqual([second]);

  const { id: third } = JSON.parse(
    await bdIn(bd, root, 'create', '--json', '--title=made outside'),
  );
  await seen(new RegExp(`"task_id":"${third}"[^\\n]*made outside`));
  abort.abort();
  await reading;
});

test('a task that an earlier server left started is opened again, one that it never ran is left alone', {
  tags: ['slow'],
}, async () => {
  const { bd, root, running, id } = await open();
  await execute(running, id);
  await untilStatus(running, id, 'complete');
  const stranger = JSON.parse(await bdIn(bd, root, 'create', '--json', '--title=theirs'))
    .id as string;
  await running.stop();
  for (const each of [id, stranger])
    await bdIn(bd, root, 'update', '--status=in_progress', '--assignee=agent-server', '--', each);

  const next = await startSystem({ root, stateDir: running.stateDir, tracker: bdTracker(bd) });

  await vi.waitFor(async () => expect(await inBd(bd, root, id)).toMatchObject({ status: 'open' }));
  expect(await inBd(bd, root, stranger)).toMatchObject({ status: 'in_progress' });
  // The second is looked at after the first.
  await vi.waitFor(() =>
    expect(next.logged.map(({ message }) => message)).toEqual([
      expect.stringContaining('it is open again'),
      expect.stringContaining('knows nothing of it'),
    ]),
  );
});

test('a project that moves to bd while the server runs is handed over with all its tasks', async () => {
  const bd = makeBd('A-direct');
  const running = await startSystem({ turns: [finish()], tracker: bdTracker(bd) });
  const { service, root, tracker } = running;
  const { task_id: before } = await service.create({ description: 'made before' });
  expect(tracker.name).toBe('embedded');

  await running.ledger.exchange.flush();
  const { task_id: late } = await service.create({ description: 'made at the last moment' });
  await bdIn(bd, root, 'init', '--prefix=bd', '--quiet');
  const { task_id: after } = await service.create({ description: 'made after' });
  await execute(running, before);
  await untilStatus(running, before, 'complete');

  expect(tracker.name).toBe('bd');
  expect((await service.list({})).tasks.map(({ task_id }) => task_id)).toEqual([before, after]);
  expect(await inBd(bd, root, before)).toMatchObject({ status: 'closed' });
  expect(readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8')).not.toContain(after);
  await running.ledger.exchange.flush();
  expect(readFileSync(join(root, '.beads', 'not-in-bd.jsonl'), 'utf8')).toContain(`"id":"${late}"`);
  expect(await running.ledger.exchange.problem()).toContain('bd import -i .beads/not-in-bd.jsonl');
});

test('a project of bd whose bd is missing is not written to', async () => {
  const { root, running } = await open();
  await running.stop();
  const gone = makeBd('A-direct');
  const { tracker } = await startSystem({
    root,
    tracker: (_, ledger) => bdTracker({ ...gone, path: '/nowhere/bd' })(root, ledger),
  });

  await expect(tracker.list()).rejects.toMatchObject({ code: 'tracker_unavailable' });
  await expect(
    tracker.create({ title: 'x', description: '', priority: 2, labels: [], dependencies: [] }),
  ).rejects.toMatchObject({ code: 'tracker_unavailable' });
  expect(await tracker.check()).toMatchObject({
    ok: false,
    detail: expect.stringContaining("bd keeps this project's tasks (.beads/beads.db)"),
  });
});
