import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { crash } from '../../support/crash.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { framesOf, notes, resultsOf, stdioServer } from '../../support/mcp.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import {
  finish,
  type Running,
  type Setting,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });

const call = (tool: string, args: object = {}): Turn => ({ calls: [{ tool, arguments: args }] });
const add = (text: string) => call('mcp__notes__add', { text });

const worktrees: NonNullable<Setting['workspace']> = (root, stateDir) =>
  worktreesOf(root, join(stateDir, 'worktrees'), [], { sandboxed: true });

const open = async (turns: readonly Turn[], more: Setting = {}) => {
  const setting: Setting = {
    turns,
    role: { mcp: ['notes'], ...more.role },
    options: { mcpServers: [stdioServer('notes')], ...more.options },
    ...(more.sandbox === undefined ? {} : { sandbox: more.sandbox }),
    ...(more.mcp === undefined ? {} : { mcp: more.mcp }),
    ...(more.workspace === undefined ? {} : { workspace: more.workspace }),
    ...(more.root === undefined ? {} : { root: more.root }),
  };
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'Take notes' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { running, id, setting };
};

const untilAsked = ({ service }: Running, id: string) =>
  vi.waitFor(async () => {
    const { awaiting } = await service.status(id);
    expect(awaiting).toBeDefined();
    return awaiting as NonNullable<typeof awaiting>;
  });

const decide = async ({ service }: Running, id: string, decision: 'allow' | 'deny') => {
  const { input_id } = await untilAsked({ service } as Running, id);
  await service.respond(id, 1, { type: 'respond', inputId: input_id, text: null, decision });
};

/** Processes that run with this program as an argument. */
const running = (word: string): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  });

/** The program of the notes under a name of its own, so that its processes can be told apart. */
const ownServer = (place: Parameters<typeof stdioServer>[2] = {}) => {
  const variant = `v${Math.random().toString(36).slice(2)}`;
  return { variant, servers: [stdioServer('notes', notes(variant), place)] };
};

testUnless(noSandbox)('an agent calls the tools of a server in the sandbox', async () => {
  const outside = mkdtempSync('/var/tmp/agent-test-');
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
  const env = { SEEN_OUTSIDE: outside, NOTES_KEY: `key \${NOTES_KEY}` };
  const { running, id } = await open(
    [
      add('one'),
      add('two'),
      call('mcp__notes__look'),
      call('mcp__notes__refuse'),
      call('mcp__notes__long'),
      finish(),
    ],
    {
      sandbox,
      options: { mcpServers: [stdioServer('notes', notes(), { env })] },
      mcp: { variables: { NOTES_KEY: 'n-1', OTHER_KEY: 'n-2' }, pinsFile: null, version: '0' },
    },
  );
  writeFileSync(join(running.root, 'a.txt'), '');

  await untilStatus(running, id, 'complete', 'failed');

  const [one, two, looked, refused, long] = await resultsOf(running, id);
  const seen = JSON.parse(looked?.output ?? '{}');
  expect(one).toEqual({ tool: 'mcp__notes__add', ok: true, output: '1: one' });
  expect(two?.output).toBe('2: one, two');
  expect(seen).toMatchObject({ home: false, writes: false });
  expect(seen.env).toMatchObject({ NOTES_KEY: 'key n-1' });
  expect(JSON.stringify(seen.env)).not.toContain('n-2');
  expect(refused).toMatchObject({ ok: false, output: expect.stringContaining('not today') });
  expect(long).toMatchObject({ ok: true, output: expect.stringMatching(/^begin x+/) });
  const logs = join(running.root, '.beads', 'tasks', `task-${id}`, 'logs');
  expect(readdirSync(logs).filter((name) => name.endsWith('.log'))).toHaveLength(1);
  expect(existsSync(join(running.root, 'written-by-server'))).toBe(false);
});

test('a call of a server that needs approval waits for a person, who may deny it', async () => {
  const role = { mcp: ['notes'], approvals: ['mcp__notes'] };
  const { running, id } = await open([add('one'), add('two'), finish()], { role });

  const asked = await untilAsked(running, id);
  await decide(running, id, 'deny');
  await vi.waitFor(async () => expect((await resultsOf(running, id)).length).toBe(1));
  await decide(running, id, 'allow');
  await untilStatus(running, id, 'complete', 'failed');

  expect(asked).toMatchObject({ kind: 'approval', calls: [{ tool: 'mcp__notes__add' }] });
  expect(await resultsOf(running, id)).toMatchObject([
    { ok: false, output: expect.stringContaining('did not allow') },
    { ok: true, output: '1: two' },
    { tool: 'finish' },
  ]);
});

test('a role that may not use a server does not see its tools', async () => {
  const { running, id } = await open([add('one'), finish()], { role: { mcp: [] } });

  await untilStatus(running, id, 'complete', 'failed');

  expect((await resultsOf(running, id))[0]?.output).toMatch(/^there is no tool mcp__notes__add/);
});

test('a server that dies is a result, and starts again for the next call', async () => {
  const { running, id } = await open([add('one'), call('mcp__notes__die'), add('two'), finish()]);

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view.status).toBe('complete');
  expect(await resultsOf(running, id)).toMatchObject([
    { ok: true, output: '1: one' },
    { ok: false, output: 'the MCP server notes: it ended with exit code 3' },
    { ok: true, output: '1: two' },
    { tool: 'finish' },
  ]);
});

test.each([
  ['is complete', [add('one'), finish()], 'complete'],
  ['fails', [add('one'), finish('no', 'failed')], 'failed'],
  ['is at a limit', [add('one'), add('two'), add('three')], 'failed'],
] as const)('the server has ended when its attempt %s', async (_, turns, status) => {
  const { variant, servers } = ownServer();
  const { running: system, id } = await open(turns, {
    options: { mcpServers: servers, maxTurns: 2 },
  });

  await untilStatus(system, id, status);

  await vi.waitFor(() => expect(running(variant)).toEqual([]));
});

test('the server has ended when its attempt is cancelled, and when ours stops', {
  tags: ['slow'],
}, async () => {
  const { variant, servers } = ownServer();
  const hang = call('bash', { command: 'sleep 600' });
  const { running: system, id } = await open([add('one'), hang], {
    options: { mcpServers: servers },
  });
  await vi.waitFor(async () => expect(await resultsOf(system, id)).toHaveLength(1), 10_000);
  const alive = running(variant).length;

  await system.service.cancel(id, null);
  const afterCancel = running(variant).length;
  await system.service.retry(id, null, null, null);
  await vi.waitFor(async () => {
    const added = (await resultsOf(system, id)).filter(({ tool }) => tool === 'mcp__notes__add');
    expect(added).toHaveLength(2);
  }, 10_000);
  await system.stop();

  expect([alive, afterCancel, running(variant).length]).toEqual([1, 0, 0]);
});

test('a call that was cut by a crash is not made again: a person is asked', async () => {
  const { variant, servers } = ownServer();
  const stall = call('mcp__notes__stall');
  const {
    running: first,
    id,
    setting,
  } = await open([stall, finish()], {
    options: { mcpServers: servers },
  });
  await vi.waitFor(async () => {
    const frames = await framesOf(first, id);
    expect(frames.map(({ type }) => type)).toContain('tool_start');
  }, 10_000);

  const next = await startSystem(await crash(first, setting));
  const { question } = await untilAsked(next, id);

  expect(question).toContain('mcp__notes__stall');
  await vi.waitFor(() => expect(running(variant)).toHaveLength(1), 5_000);
});

testUnless(noSandbox).each([
  ['its own worktree it may write where it is allowed to', worktrees, true],
  ['a shared folder it may not write, whatever is allowed', undefined, false],
])('a server that may write: in %s', async (_, workspace, writes) => {
  const { running: system, id } = await open([call('mcp__notes__look'), finish()], {
    sandbox,
    ...(workspace === undefined ? {} : { workspace, root: makeRepository() }),
    options: { mcpServers: [stdioServer('notes', notes(), { mayWrite: true })] },
  });

  await untilStatus(system, id, 'complete', 'failed');

  const [looked] = await resultsOf(system, id);
  expect(looked?.output).toContain(`"writes":${writes}`);
  if (writes)
    expect(gitIn(system.root, 'show', '--stat', `agent/${id}/1`)).toContain('written-by-server');
});
