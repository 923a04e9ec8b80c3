import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import parsePrometheus from 'parse-prometheus-text-format';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { noPromtool, testUnless } from '../support/needs.ts';
import { bash, finish, startServer, untilStatus } from '../support/running.ts';

/** The text of `GET /metrics`, read by parsers that are not ours. */

const textOf = async ({ base, headers }: Awaited<ReturnType<typeof startServer>>) =>
  (await fetch(`${base}/metrics`, { headers: { authorization: headers.authorization } })).text();

const histogramSchema = z.object({
  buckets: z.record(z.string(), z.string()),
  count: z.string(),
  sum: z.string(),
});
const familiesSchema = z.array(
  z.object({ name: z.string(), type: z.string(), help: z.string(), metrics: z.array(z.unknown()) }),
);
const familiesOf = (text: string) => familiesSchema.parse(parsePrometheus(text));

const histogramIn = (text: string, name: string) => {
  const family = familiesOf(text).find((other) => other.name === `agent_${name}_duration_seconds`);
  const { buckets, count, sum } = histogramSchema.parse(family?.metrics[0]);
  const inBuckets = Object.entries(buckets)
    .map(([le, value]) => [le, Number(value)] as const)
    .toSorted(([a], [b]) => (a === '+Inf' ? 1 : b === '+Inf' ? -1 : Number(a) - Number(b)));
  return { type: family?.type, buckets: inBuckets, count: Number(count), sum: Number(sum) };
};

const workedServer = async () => {
  const server = await startServer({ turns: [bash('sleep 0.06'), finish()], options: { cap: 1 } });
  const ids: string[] = [];
  for (let n = 0; n < 2; n++)
    ids.push((await server.call('create', { description: `task ${n}` })).result.task_id);
  for (const task_id of ids) await server.call('execute', { task_id, role: 'engineer' });
  for (const id of ids) await untilStatus(server, id, 'complete');
  return server;
};

test('the durations of waits, attempts, calls and commits are histograms that a parser reads', async () => {
  const server = await workedServer();

  const text = await textOf(server);

  const waits = histogramIn(text, 'queue_wait');
  const runs = histogramIn(text, 'run');
  const tools = histogramIn(text, 'tool_call');
  expect([waits.count, runs.count]).toEqual([2, 2]);
  expect(histogramIn(text, 'model_call').count).toBe(4);
  // The second task waited for the slot while the first one slept.
  expect(waits.sum).toBeGreaterThan(0.05);
  expect(runs.sum).toBeGreaterThan(0.12);
  const quick = tools.buckets.find(([le]) => le === '0.05')?.[1];
  // On a busy machine the calls that do not sleep take as long.
  expect(tools.count).toBe(4);
  expect(tools.count - (quick ?? 0)).toBeGreaterThanOrEqual(2);
  for (const name of ['tracker_call', 'store_commit'])
    expect(histogramIn(text, name).count).toBeGreaterThan(3);
  for (const { buckets, count, type } of [waits, runs, tools]) {
    expect(type).toBe('HISTOGRAM');
    expect(buckets.at(-1)).toEqual(['+Inf', count]);
    expect(buckets.map(([, value]) => value)).toEqual(
      buckets.map(([, value]) => value).toSorted((a, b) => a - b),
    );
  }
});

test('a restart keeps the histograms of tasks, and begins those of the process again', async () => {
  const first = await workedServer();
  const before = await textOf(first);
  await first.stop();

  const second = await startServer({ root: first.root, stateDir: first.stateDir });
  const after = await textOf(second);

  for (const name of ['queue_wait', 'run', 'model_call', 'tool_call'])
    expect(histogramIn(after, name)).toEqual(histogramIn(before, name));
  expect(histogramIn(after, 'store_commit').count).toBeLessThan(
    histogramIn(before, 'store_commit').count,
  );
});

test('names, types and labels follow the conventions of Prometheus', async () => {
  const server = await workedServer();

  const families = familiesOf(await textOf(server));

  expect(families.length).toBeGreaterThan(15);
  for (const { name, type, help, metrics } of families) {
    expect(name).toMatch(/^agent_[a-z_]+$/);
    expect(help).toMatch(/\.$/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'COUNTER']);
    if (type === 'HISTOGRAM') expect(name).toMatch(/_seconds$/);
    expect(name).not.toMatch(/_(ms|millis|milliseconds|minutes|kb|mb)(_|$)/);
    for (const metric of metrics) expect(metric).not.toHaveProperty('labels');
  }
});

testUnless(noPromtool)('promtool finds nothing to mend', async () => {
  const input = await textOf(await workedServer());

  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input,
    encoding: 'utf8',
  });

  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
});

const dashboardSchema = z.object({
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).min(1) }),
  ),
});

test('every query of the Grafana dashboard asks for a metric that the server serves', async () => {
  const file = new URL('../../docs/grafana-dashboard.json', import.meta.url);
  const { panels } = dashboardSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  const text = await textOf(await startServer());

  const served = new Set(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split(/[{ ]/)[0] ?? ''),
  );

  const asked = panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr }) => expr.match(/agent_\w+/g) ?? ['no metric']),
  );
  expect(asked.filter((name) => !served.has(name))).toEqual([]);
  const families = familiesOf(text).map(({ name }) => name);
  const shown = (name: string) => asked.some((query) => query.startsWith(name));
  expect(families.filter((name) => !shown(name))).toEqual(['agent_tasks_spawned_total']);
});
