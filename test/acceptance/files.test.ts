import { closeSync, ftruncateSync, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createBubblewrap } from '../../src/actors/sandbox/bubblewrap.ts';
import { editTool } from '../../src/actors/tools/edit.ts';
import { findTool } from '../../src/actors/tools/find.ts';
import { grepTool } from '../../src/actors/tools/grep.ts';
import type { ToolResult } from '../../src/actors/tools/port.ts';
import { readTool } from '../../src/actors/tools/read.ts';
import { createWorkbench } from '../actors/agent/workbench.ts';
import { openProject, plain } from '../support/cli.ts';
import { slowestOf, whileHealthIsAsked } from '../support/health.ts';
import { isLong } from '../support/long.ts';
import { noSandbox, testUnless } from '../support/needs.ts';
import { finish, startServer, untilStatus } from '../support/running.ts';

/** Entries that are not regular files, and how to create each. */
const odd: Readonly<Record<string, (root: string) => unknown>> = {
  'a FIFO': (root) => execa('mkfifo', [join(root, 'odd')]),
  'a socket': async (root) => {
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(join(root, 'odd'), resolve));
  },
  'a link to a device': (root) => symlinkSync('/dev/zero', join(root, 'odd')),
  'a sparse file of 10 GB': (root) => {
    const file = openSync(join(root, 'odd'), 'w');
    ftruncateSync(file, 10 * 1024 ** 3);
    closeSync(file);
  },
  'a loop of links': (root) => symlinkSync('odd', join(root, 'odd')),
  'a folder that leads to itself': (root) => {
    mkdirSync(join(root, 'odd'));
    symlinkSync('.', join(root, 'odd', 'again'));
  },
};

describe('A22 a file that is not regular is refused at once', () => {
  test.each(Object.entries(odd))('%s', async (_, make) => {
    const { root, context } = await createWorkbench();
    await make(root);
    const path = 'odd';
    const edits = [{ old_text: 'a', new_text: 'b' }];
    const timed = async (call: Promise<ToolResult>) => {
      const began = performance.now();
      return { ...(await call), ms: performance.now() - began };
    };

    const read = await timed(readTool.run({ path, offset: 1, limit: 10 }, context));
    const edited = await timed(editTool.run({ path, edits }, context));
    const searched = await timed(grepTool.run({ pattern: 'a', path: '.' }, context));
    const found = await timed(findTool.run({ pattern: '*', path: '.' }, context));

    expect([read.ok, edited.ok]).toEqual([false, false]);
    expect([read.ms, edited.ms].filter((ms) => ms > 300)).toEqual([]);
    expect([searched.text, found.ok]).toEqual(['no matches', true]);
    expect([searched.ms, found.ms].filter((ms) => ms > 2_000)).toEqual([]);
  });
});

/**
 * Every pattern would keep a naive matcher, or our own expansion of braces and stars, busy for
 * longer than a test.
 */
const hostile = {
  'nested repetitions': { tool: 'grep', arguments: { pattern: '^(a+)+$' } },
  'a reference back': { tool: 'grep', arguments: { pattern: '^(a*)*(a*)*\\1\\2b$' } },
  'repetitions that multiply': {
    tool: 'grep',
    arguments: { pattern: '((((a{1,100}){1,100}){1,100}){1,100})$' },
  },
  'a glob of many stars': { tool: 'find', arguments: { pattern: `${'*a'.repeat(40)}b` } },
  'many braces': { tool: 'find', arguments: { pattern: '{a,b}'.repeat(20_000) } },
  'many double stars': { tool: 'find', arguments: { pattern: '**/'.repeat(30_000) } },
  'braces of a file name': {
    tool: 'grep',
    arguments: { pattern: 'a', glob: '{a,b}'.repeat(20_000) },
  },
} as const;

test.each(Object.entries(hostile))(
  'A27 a hostile pattern does not block the server: %s',
  async (_, call) => {
    const running = await startServer({ turns: [{ calls: [call] }, finish()] });
    writeFileSync(join(running.root, 'a'.repeat(200)), `${'a'.repeat(5_000)}!\n`);
    const { task_id: id } = await running.service.create({ description: 'a task' });
    const lag = monitorEventLoopDelay({ resolution: 5 });
    lag.enable();

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await Promise.race([untilStatus(running, id, 'complete', 'failed'), delay(1_000)]);

    lag.disable();
    // Another process may have the core meanwhile: the limit of a user is measured by the long suite.
    expect(lag.max / 1e6).toBeLessThan(isLong ? 300 : 3_000);
  },
);

const sandbox = createBubblewrap({ readPaths: [], network: false, memoryBytes: 256 * 1024 ** 2 });
testUnless(noSandbox)('A27 a pattern gets no more memory than a command', async () => {
  const { context, put } = await createWorkbench();
  await put('file', `${'a'.repeat(5_000)}!\n`);
  const { pattern } = hostile['repetitions that multiply'].arguments;

  const simple = await grepTool.run({ pattern: 'a!', path: '.' }, { ...context, sandbox });
  const found = await findTool.run({ pattern: '*', path: '.' }, { ...context, sandbox });
  const greedy = await grepTool.run({ pattern, path: '.' }, { ...context, sandbox });

  expect([simple.ok, found.text]).toEqual([true, 'file']);
  expect(greedy).toEqual({ ok: false, text: expect.stringMatching(/memory exhausted|13[79]/i) });
});

test('A22 eight FIFOs read at once block neither the server nor its shutdown', async () => {
  const names = Array.from({ length: 8 }, (_, n) => `fifo${n}`);
  const calls = names.map((path) => ({ tool: 'read', arguments: { path } }));
  const running = await startServer({ turns: [{ calls }, finish()] });
  await execa('mkfifo', names, { cwd: running.root });
  const { task_id: id } = await running.service.create({ description: 'a task' });

  const health = await whileHealthIsAsked(running.base, async () => {
    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await untilStatus(running, id, 'complete', 'failed');
    await delay(500);
  });

  expect(slowestOf(health, 0.99)).toBeLessThan(isLong ? 300 : 3_000);
});

test('A22 a server stops on SIGTERM while FIFOs are read', { tags: ['slow'] }, async () => {
  const project = openProject(undefined, { ownServer: true });
  const names = Array.from({ length: 8 }, (_, n) => `fifo${n}`);
  const script = join(dirname(project.configFile), 'script.json');
  const calls = names.map((path) => ({ tool: 'read', arguments: { path } }));
  const hang = {
    calls: [{ tool: 'bash', arguments: { command: 'sleep 600', timeout_seconds: 600 } }],
  };
  writeFileSync(script, JSON.stringify({ scripts: [{ turns: [{ calls }, hang] }] }));
  writeFileSync(
    project.configFile,
    JSON.stringify({ ...plain, api: { backend: 'scripted', script } }),
  );
  await execa('mkfifo', names, { cwd: project.root });
  const server = project.start('agent-server', ['--server']);
  const ended = project.collect(server);
  while (project.serverFile() === null) await delay(20);
  const id = (await project.agent('create', 'Do it')).out.trim();
  await project.agent('--async', 'engineer', id);
  while (!(await project.agent('logs', id, '--json')).out.includes('sleep 600')) await delay(20);

  server.kill('SIGTERM');

  expect((await ended).code).toBe(0);
});
