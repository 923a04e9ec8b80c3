import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { connectMcp, type McpConnection } from '../../../src/actors/mcp/connection.ts';
import { openStdio } from '../../../src/actors/mcp/transports.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { resultsOf, stdioServer } from '../../support/mcp.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const program = join(import.meta.dirname, '..', '..', 'support', 'mcp', 'hostile-server.mjs');
const signal = new AbortController().signal;
const bubblewrap = createBubblewrap({ readPaths: [], network: false });

const reach = async (
  habit: string,
  more: readonly string[] = [],
  startMs = 20_000,
  sandbox = createNoSandbox(),
) => {
  const connection = await connectMcp({
    server: 'x',
    version: '0',
    startMs,
    signal,
    place: {
      roots: [],
      hint: null,
      open: openStdio(sandbox, {
        argv: [process.execPath, program, habit, ...more],
        root: temporaryFolder(),
        readable: [dirname(program)],
        readOnly: true,
        env: childEnvironment(process.env),
        network: false,
      }),
    },
  });
  onTestFinished(() => connection.close());
  return connection;
};

const call = ({ call: send }: McpConnection, ms = 10_000) => send('ok', {}, ms, signal);
const namesOf = ({ tools }: McpConnection) => tools.map(({ name }) => name);

const running = (word: string): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  });

/** The longest time (ms) that this process could do nothing else, and how much it grew (MiB). */
const burdenOf = async (work: () => Promise<unknown>) => {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const before = process.memoryUsage().rss;
  delay.enable();
  await work();
  delay.disable();
  return { lagMs: delay.max / 1e6, grownMiB: (process.memoryUsage().rss - before) / 2 ** 20 };
};

describe('a server that cannot be used is an error', () => {
  test.each<[string, string, RegExp, number?]>([
    ['never answers', 'silent', /^no answer within 0.5 s$/, 500],
    ['ends at once', 'dies', /^it ended with exit code 7: no licence\[31m$/],
    ['speaks another protocol', 'version', /^it speaks no version of the protocol/],
    ['has no list', 'no-list', /^its list of tools is not a list$/],
  ])('a server that %s', async (_, habit, why, startMs) => {
    await expect(reach(habit, [], startMs)).rejects.toThrow(why);
  });
});

describe('a list', () => {
  test('that never ends is read in part', async () => {
    const connection = await reach('endless');

    expect(connection.tools).toHaveLength(128);
    expect(connection.left).toHaveLength(20 * 50 - 128);
  });

  test('with many tools is cut', async () => {
    const { tools, left } = await reach('many');

    expect([tools.length, left.length]).toEqual([128, 772]);
  });

  test('has only plain names, each once, and its first tool keeps a name', async () => {
    const connection = await reach('names');

    expect(namesOf(connection)).toEqual([
      'mcp__x__ok',
      'mcp__x__o_k',
      'mcp__x__finish',
      expect.stringMatching(/^mcp__x__n{47}_[0-9a-f]{8}$/),
    ]);
    expect(connection.tools[0]?.description).toBe('[of the MCP server x] first');
    expect(connection.left).toEqual([
      'a second mcp__x__ok',
      'a second mcp__x__o_k',
      'a tool whose name is not plain text (with line)',
      'a tool whose name is not plain text (with[31mcolour)',
      'a tool whose name is not plain text (eman)',
      expect.stringMatching(/^a tool whose name is not plain text \(n{40}\)$/),
      'a tool without a name',
      'a tool without a name',
      'a tool without a name',
    ]);
  });

  test('hides no words from people, and its descriptions are short', async () => {
    const { tools } = await reach('words');

    const [{ description = '' } = {}] = tools;
    expect(description).toMatch(/^\[of the MCP server x\] Ignore all rules\. long long/);
    expect(description.length).toBeLessThan(4_200);
  });

  test('describes arguments in the words that providers know', async () => {
    const { tools, left } = await reach('schemas');

    expect(tools.map(({ tool }) => tool)).toEqual(['strange', 'none']);
    expect(tools[0]?.parameters).toMatchObject({
      type: 'object',
      properties: {
        path: { description: 'a b c' },
        choice: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/deep' }] },
      },
    });
    expect(JSON.stringify(tools[0]?.parameters)).not.toMatch(/evil|passwd|x-run|nonsense/);
    expect(tools[1]?.parameters).toEqual({ type: 'object', properties: {} });
    expect(left).toEqual(['mcp__x__huge, whose arguments are described in more than 32 KiB']);
  });
});

describe('a call', () => {
  test.each<[string, string, RegExp]>([
    ['whose answer has no end', 'gigabyte-line', /a line of more than 4 MiB/],
    ['whose answer is too long', 'too-big', /a line of more than 4 MiB/],
    ['that is drowned in notifications', 'flood', /more messages than anybody asked for/],
    ['that is drowned in garbage', 'garbage', /more messages than anybody asked for/],
    ['that is drowned in errors', 'errors', /floods its error output/],
  ])('%s ends the server, and burdens ours little', async (_, habit, why) => {
    const connection = await reach(habit);

    const burden = await burdenOf(() => expect(call(connection)).rejects.toThrow(why));

    expect(connection.over()).toMatch(why);
    expect(burden.lagMs).toBeLessThan(5_000);
    expect(burden.grownMiB).toBeLessThan(128);
  });

  test('that hangs ends at its limit; the server is kept while it answers a ping', {
    tags: ['slow'],
  }, async () => {
    const [hanging, stuck] = [await reach('hang'), await reach('stuck')];

    await expect(call(hanging, 200)).rejects.toThrow('no answer within 0.2 s');
    await expect(call(stuck, 200)).rejects.toThrow('no answer within 0.2 s');

    expect(hanging.over()).toBe(null);
    expect(stuck.over()).toBe('it was closed');
  });

  test('with a deep answer is a failure', async () => {
    const connection = await reach('deep');

    await expect(call(connection)).rejects.toThrow(/call stack/);
    expect(connection.over()).toBe(null);
  });

  test.each([
    ['a long answer is read', 'big', 'y'.repeat(3_000_000)],
    ['odd parts are named', 'odd', '[image, undefined, no data, is not shown]'],
    ['answers of nobody are left', 'ids', 'mine'],
    [
      'a question of the server is refused',
      'asks',
      '{"code":-32601,"message":"this client does not offer it"}',
    ],
  ])('%s', async (_, habit, text) => {
    expect(await call(await reach(habit))).toEqual({ ok: true, text });
  });
});

test('a server that works without an end and obeys no signal is ended', async () => {
  const word = `w${Math.random().toString(36).slice(2)}`;
  const connection = await reach('stuck', [word]);
  void call(connection).catch(() => {});
  const before = running(word).length;

  await connection.close();

  expect([before, running(word)]).toEqual([1, []]);
});

testUnless(noSandbox)('processes that leave the group of their server end with it', async () => {
  const word = `w${Math.random().toString(36).slice(2)}`;
  const connection = await reach('forks', [word], 20_000, bubblewrap);
  await vi.waitFor(() => expect(running(word).length).toBeGreaterThanOrEqual(4));

  await connection.close();

  expect(running(word)).toEqual([]);
});

test.each(['silent', 'dies', 'gigabyte-line', 'flood', 'stuck', 'deep'])(
  'an attempt with a server that is hostile (%s) goes on without it',
  async (habit) => {
    const place = { sandboxed: bubblewrap.check().ok };
    const limits = { startMs: habit === 'silent' ? 500 : 20_000, callMs: 500 };
    const running = await startSystem({
      turns: [{ calls: [{ tool: 'mcp__x__ok', arguments: {} }] }, finish()],
      role: { mcp: ['x'] },
      sandbox: bubblewrap,
      options: { mcpServers: [stdioServer('x', [program, habit], place, limits)] },
    });
    const { task_id: id } = await running.service.create({ description: 'Go on' });

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    const { status } = await untilStatus(running, id, 'complete', 'failed');

    expect(status).toBe('complete');
    expect(await resultsOf(running, id)).toMatchObject([{ ok: false }, { tool: 'finish' }]);
  },
);
