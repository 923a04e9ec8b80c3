import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openPins, openServers, placeFor } from '../../../src/actors/mcp/open-servers.ts';
import type { McpServer } from '../../../src/actors/mcp/port.ts';
import type { Model, ModelEvent, ModelRequest } from '../../../src/actors/model/port.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { framesOf, resultsOf, startMcpServer, stdioServer } from '../../support/mcp.ts';
import { type Running, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const programs = join(import.meta.dirname, '..', '..', 'support', 'mcp');
const program = join(programs, 'changing-server.mjs');
const hostile = join(programs, 'hostile-server.mjs');
const { signal } = new AbortController();

interface Seen {
  readonly system: string;
  readonly tools: readonly string[];
}

/** Calls `grow` until it sees `extra`, then that. A change is told beside the answer of a call. */
const untilGrown = (seen: Seen[], growsAtMost = 50): Model => ({
  name: 'until grown',
  disclaimer: null,
  async *ask({ system, tools, messages }: ModelRequest): AsyncGenerator<ModelEvent> {
    seen.push({ system, tools: tools.map(({ name }) => name) });
    const sees = tools.some(({ name }) => name === 'mcp__far__extra');
    const hasCalled = JSON.stringify(messages).includes('mcp__far__extra');
    const next = sees && !hasCalled ? 'mcp__far__extra' : 'mcp__far__grow';
    const isOver = hasCalled || seen.length > growsAtMost;
    const args = isOver ? { status: 'done', summary: 'done' } : {};
    const call = { id: `call_${seen.length}`, tool: isOver ? 'finish' : next };
    const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
    const calls = [{ ...call, arguments: JSON.stringify(args) }];
    yield { type: 'answered', text: '', calls, truncated: false, usage };
  },
});

const serverOf = async (line: string, kind: string): Promise<McpServer> => {
  if (kind === 'stdio') return stdioServer('far', [program, line, 'stdio']);
  const { url } = await startMcpServer(program, [line, 'http']);
  const place = { kind: 'http', url, headers: {} } as const;
  return { ...stdioServer('far'), place };
};

const allow = async ({ service }: Running, id: string) => {
  const { input_id, question } = await vi.waitFor(async () => {
    const { awaiting } = await service.status(id);
    expect(awaiting).toBeDefined();
    return awaiting as NonNullable<typeof awaiting>;
  }, 20_000);
  const decision = { type: 'respond', inputId: input_id, text: null, decision: 'allow' } as const;
  await service.respond(id, 1, decision);
  return question;
};

test.each([
  ['2025', 'stdio'],
  ['2025', 'http'],
  ['2026', 'stdio'],
  ['2026', 'http'],
])(
  'a tool that a server of %s adds over %s is offered in a later turn, and a person sees it first',
  async (line, kind) => {
    const seen: Seen[] = [];
    const running = await startSystem({
      model: untilGrown(seen),
      role: { mcp: ['far'] },
      options: { mcpServers: [await serverOf(line, kind)] },
    });
    const { task_id: id } = await running.service.create({ description: 'Grow' });

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    const question = await allow(running, id);
    await untilStatus(running, id, 'complete', 'failed');

    expect(question).toContain('mcp__far__extra is new on its server');
    expect((await resultsOf(running, id)).slice(-2)).toMatchObject([
      { tool: 'mcp__far__extra', ok: true, output: 'extra' },
      { tool: 'finish', ok: true },
    ]);
    const [first, last] = [seen[0], seen.at(-1)];
    expect(last?.tools).toEqual([...(first?.tools ?? []), 'mcp__far__extra']);
    expect(last?.system).toContain('mcp__far__extra');
    // The request before the change is the same in each turn, so that a provider's cache holds.
    expect(new Set(seen.map((each) => JSON.stringify(each))).size).toBe(2);
    const logs = (await framesOf(running, id)).filter(({ type }) => type === 'log');
    expect(logs.filter(({ data }) => data['level'] === 'warn')).toEqual([]);
  },
);

/** A server that says after each list that it has changed. */
const openHostile = async (habit: string) => {
  const warned: string[] = [];
  const server = stdioServer('x', [hostile, habit], {}, { startMs: 20_000 });
  const around = {
    ...{ root: temporaryFolder(), readable: [], git: null, sandbox: createNoSandbox() },
    ...{ networkOf: () => false, usersFiles: null, env: childEnvironment(process.env) },
    variables: {},
  } as const;
  const servers = await openServers({
    ...{ servers: [server], version: '0', pins: openPins(null), signal },
    placeFor: (each) => placeFor(each, around),
    warn: (message) => void warned.push(message),
  });
  onTestFinished(() => servers.close());
  return {
    warned,
    refresh: () => servers.refresh(signal),
    names: () => servers.tools().map(({ name }) => name),
  };
};

test('a server whose list changes without an end is read once a turn', async () => {
  const { names, refresh } = await openHostile('restless');

  const seen = [names()];
  for (let turn = 0; turn < 2; turn += 1) {
    await refresh();
    seen.push(names());
  }

  expect(seen).toEqual([['mcp__x__ok1'], ['mcp__x__ok2'], ['mcp__x__ok3']]);
});

test('a server that does not tell its new list keeps the old one, and is asked three times', {
  tags: ['slow'],
}, async () => {
  const { names, refresh, warned } = await openHostile('mute');

  for (let turn = 0; turn < 4; turn += 1) await refresh();

  expect(names()).toEqual(['mcp__x__ok1']);
  expect(warned).toEqual(
    Array(3).fill('the MCP server x: its new list could not be read: no answer within 5 s'),
  );
});
