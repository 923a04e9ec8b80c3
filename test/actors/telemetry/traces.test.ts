import { expect, onTestFinished, test } from 'vitest';
import { createSpanExporter, type Span } from '../../../src/actors/telemetry/export-spans.ts';

import { traceJournal } from '../../../src/actors/telemetry/trace-journal.ts';
import { startCollector } from '../../support/collector.ts';
import {
  bash,
  finish,
  hang,
  type Running,
  type Setting,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

const resource = { serviceName: 'test', version: '1' };
const redact = (text: string): string => text.replaceAll('hunter2', '[secret]');

const traced = async (endpoint: string, setting: Setting) => {
  const running = await startSystem(setting);
  const collector = { url: `${endpoint}/v1/traces`, headers: {} };
  const { log } = running;
  const options = { journal: running.system.journal, project: 'p', collector, resource };
  const traces = traceJournal({ ...options, redact, log });
  onTestFinished(traces.stop);
  return { ...running, traces };
};

const begin = async ({ service }: Pick<Running, 'service'>, verify: readonly string[] = []) => {
  const { task_id } = await service.create({ description: 'say nothing of teapots' });
  await service.execute({ task: task_id, role: 'engineer', options: { verify } });
  return task_id;
};

test('an attempt is one trace, with a span for each step and call and no text', async () => {
  const collector = await startCollector();
  const turns = [bash('echo of kettles'), finish('the password is hunter2, said the teapot')];
  const running = await traced(collector.endpoint, { turns });

  const id = await begin(running, ['true']);
  await untilStatus(running, id, 'complete');
  await running.traces.stop();

  expect(collector.faults).toEqual([]);
  const { spans } = collector;
  const [root, ...others] = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
  expect(others).toEqual([]);
  expect(root).toMatchObject({
    name: 'invoke_agent engineer',
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'engineer',
      'agent_task.id': id,
      'agent_task.attempt': '1',
      'agent_task.status': 'complete',
    },
    status: {},
    resource: { 'service.name': 'test' },
  });
  const children = spans.filter((span) => span !== root);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  for (const { parentSpanId, startTimeUnixNano, endTimeUnixNano } of children) {
    expect(parentSpanId).toBe(root?.spanId);
    expect(BigInt(startTimeUnixNano)).toBeLessThanOrEqual(BigInt(endTimeUnixNano));
    expect(BigInt(endTimeUnixNano)).toBeLessThanOrEqual(BigInt(root?.endTimeUnixNano ?? 0));
  }
  const names = children.map(({ name }) => name);
  expect(names).toEqual([
    ...['claim', 'prepare', 'chat scripted', 'execute_tool bash'],
    ...['chat scripted', 'execute_tool finish', 'verify', 'record', 'close'],
  ]);
  expect(children.find(({ name }) => name === 'chat scripted')).toMatchObject({
    kind: 3,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'scripted',
      'gen_ai.usage.output_tokens': expect.stringMatching(/^\d+$/),
    },
  });
  expect(collector.texts.join('')).not.toMatch(/hunter2|teapot|kettle/);
});

test('a restarted server goes on with the trace of an attempt, and a failure is marked', async () => {
  const collector = await startCollector();
  const first = await traced(collector.endpoint, { turns: [hang] });
  const id = await begin(first);
  await collector.until(() => collector.spans.some(({ name }) => name === 'chat scripted'));
  await first.traces.stop();
  await first.stop();
  const traceId = collector.spans[0]?.traceId;

  const second = await traced(collector.endpoint, {
    ...{
      root: first.root,
      stateDir: first.stateDir,
      model: null,
      options: { onInterrupted: 'repeat' },
    },
  });
  await second.service.cancel(id, null);
  await untilStatus(second, id, 'cancelled', 'failed');
  await second.traces.stop();

  const root = collector.spans.find(({ parentSpanId }) => parentSpanId === undefined);
  expect(root?.traceId).toBe(traceId);
  expect(root?.attributes['agent_task.status']).toBe('cancelled');
});

const aSpan = (n: number): Span => ({
  ...{ traceId: 'a'.repeat(32), spanId: String(n).padStart(16, '0'), parentSpanId: null },
  ...{
    name: 's',
    kind: 'internal',
    startAt: 1.7e12,
    endAt: 1.7e12 + 5,
    attributes: {},
    error: null,
  },
});
const exporterTo = (endpoint: string) => {
  const logged: { message: string; facts: object }[] = [];
  const exporter = createSpanExporter({
    collector: { url: `${endpoint}/v1/traces`, headers: { 'x-key': 'k' } },
    ...{ resource, redact },
    log: (message, facts) => void logged.push({ message, facts }),
  });
  onTestFinished(exporter.stop);
  return { exporter, logged };
};
const many = (from: number, count: number): Span[] =>
  Array.from({ length: count }, (_, n) => aSpan(from + n));

test('a collector that is away fails no task, and is told of once', async () => {
  const running = await traced('http://127.0.0.1:1', { turns: [finish()] });

  const id = await begin(running);
  await untilStatus(running, id, 'complete');
  await running.traces.stop();

  const told = running.logged.filter(({ message }) => message.startsWith('traces'));
  expect(told).toEqual([
    { message: 'traces cannot be sent; tasks go on', facts: { problem: expect.any(String) } },
  ]);
});

test('a collector that never answers holds up nobody, and no more than 2,048 spans wait', {
  tags: ['slow'],
}, async () => {
  const collector = await startCollector(() => false);
  const { exporter } = exporterTo(collector.endpoint);
  exporter.add(many(0, 512));
  await collector.until(() => collector.headers.length === 1);

  for (let n = 0; n < 100; n++) exporter.add(many(n * 1_000, 1_000));
  await exporter.stop();

  expect(collector.headers).toHaveLength(1);
});

test('spans that a busy collector refused are sent again, once; lost ones are counted', {
  tags: ['slow'],
}, async () => {
  const collector = await startCollector((response, request) => {
    if (request > 1) return true;
    response.writeHead(503).end();
    return false;
  });
  const { exporter, logged } = exporterTo(collector.endpoint);

  exporter.add(many(0, 3_000));
  await collector.until(() => collector.headers.length === 1);
  await collector.until(() => collector.spans.length > 0);
  await exporter.stop();

  expect(collector.spans).toHaveLength(2_048);
  expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(2_048);
  expect(logged).toEqual([
    {
      message: 'traces cannot be sent; tasks go on',
      facts: { problem: 'the collector answered 503' },
    },
    { message: 'traces are sent again', facts: { lost_spans: 952 } },
  ]);
  expect(collector.headers[0]).toMatchObject({ 'x-key': 'k' });
});
