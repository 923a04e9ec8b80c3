import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { finish, hang, startServer, untilStatus } from '../support/running.ts';

/** The server's counters and health. */

type Server = Awaited<ReturnType<typeof startServer>>;

const begin = async ({ call }: Server, role = 'engineer'): Promise<string> => {
  const { task_id } = (await call('create', { description: 'a task' })).result;
  await call('execute', { task_id, role });
  return task_id;
};
const metrics = async ({ base, headers }: Server) =>
  (await (
    await fetch(`${base}/metrics`, { headers: { ...headers, accept: 'application/json' } })
  ).json()) as Record<string, number>;

test('a cancelled task is counted as cancelled, and not as failed', async () => {
  const server = await startServer({ turns: [hang] });
  const id = await begin(server);
  const before = await vi.waitFor(async () => {
    const counted = await metrics(server);
    expect(counted['tasks_spawned']).toBe(1);
    return counted;
  });

  await server.call('cancel', { task_id: id });

  expect(before).toMatchObject({ tasks_in_progress: 1, tasks_cancelled: 0 });
  expect(await metrics(server)).toMatchObject({
    tasks_spawned: 1,
    tasks_completed: 0,
    tasks_failed: 0,
    tasks_cancelled: 1,
    tasks_in_progress: 0,
  });
});

test("the counters equal the journal's events, and the mean covers completed tasks", async () => {
  const held = {
    calls: [{ tool: 'bash', arguments: { command: 'until [ -e go ]; do sleep 0.05; done' } }],
  };
  const server = await startServer({ turns: [held, finish()], options: { cap: 1 } });
  const [done, doomed] = [await begin(server), await begin(server, 'reviewer')];
  const waiting = await metrics(server);
  await server.call('cancel', { task_id: doomed });
  writeFileSync(join(server.root, 'go'), '');
  const { started_at, completed_at } = await untilStatus(server, done, 'complete');
  const { result: byHand } = await server.call('create', { description: 'by hand' });
  await server.call('close', { task_id: byHand.task_id });

  const counted = await metrics(server);

  const frames = server.store.read({ after: 0, limit: 1_000 });
  const ofType = (type: string) =>
    frames.filter((frame) => frame.type === type).map(({ data }) => JSON.parse(data));
  const calls = ofType('api_call_complete');
  const sum = (name: string): number => calls.reduce((total, call) => total + (call[name] ?? 0), 0);
  expect(waiting).toMatchObject({ tasks_in_progress: 1, queue_depth: 1 });
  expect(counted).toMatchObject({
    tasks_completed: ofType('completed').length,
    tasks_cancelled: ofType('cancelled').length,
    api_calls_total: calls.length,
    api_calls_failed: calls.filter(({ ok }) => !ok).length,
    input_tokens_total: sum('input_tokens'),
    output_tokens_total: sum('output_tokens'),
    queue_depth: 0,
  });
  expect(calls).toHaveLength(2);
  const took = (Date.parse(completed_at ?? '') - Date.parse(started_at ?? '')) / 1000;
  expect(counted['average_execution_seconds']).toBeGreaterThan(0);
  expect(Math.abs((counted['average_execution_seconds'] ?? 0) - took)).toBeLessThan(
    Math.max(0.2, took / 2),
  );
  expect(counted['uptime_seconds']).toBeLessThan(600);
});

test('health checks the tracker, and an unavailable one degrades it by name', async () => {
  const server = await startServer();
  const health = async () => (await (await fetch(`${server.base}/health`)).json()) as object;
  await server.call('create', { description: 'a task' });
  await server.ledger.exchange.flush();
  const before = await health();

  appendFileSync(join(server.root, '.beads', 'issues.jsonl'), 'no json\n{"id":"bd-x"}\n');

  expect(before).toMatchObject({ status: 'healthy', checks: { tracker: { status: 'ok' } } });
  expect(await health()).toMatchObject({
    status: 'degraded',
    checks: {
      tracker: { status: 'failing', detail: expect.stringContaining('line 2') },
      store: { status: 'ok' },
    },
  });
});
