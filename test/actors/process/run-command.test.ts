import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import {
  type Command,
  childEnvironment,
  runCommand,
} from '../../../src/actors/process/run-command.ts';
import { createWorkbench, isAlive, type Workbench } from '../agent/workbench.ts';

const commandIn = ({ root, abort }: Workbench, script: string): Command => ({
  argv: ['/bin/sh', '-c', script],
  cwd: root,
  env: childEnvironment(process.env),
  timeoutMs: 20_000,
  signal: abort.signal,
  headBytes: 4_096,
  tailBytes: 4_096,
  namedOutputs: true,
});

/**
 * A shell, a grandchild and a great-grandchild, all ignoring SIGTERM; prints their ids, then stays.
 */
const stubbornTree = `trap '' TERM; sleep 300 & echo $!; sh -c 'trap "" TERM; echo $$; sleep 300 & echo $!; wait' & echo $$; echo ready; wait`;

const pidsIn = (output: string): readonly number[] => (output.match(/^\d+$/gm) ?? []).map(Number);

describe('a command', () => {
  test('returns its exit code and both streams', async () => {
    const bench = await createWorkbench();

    const result = await runCommand(commandIn(bench, 'echo out; echo err >&2; exit 3'));

    expect({ ...result, output: result.output.split('\n').sort() }).toEqual({
      exitCode: 3,
      timedOut: false,
      aborted: false,
      leftProcesses: false,
      output: ['', 'err', 'out'],
      truncatedBytes: 0,
    });
  });

  test('streams its output, never cut inside a character', async () => {
    const bench = await createWorkbench();
    const seen: string[] = [];
    const script = `printf '\\303'; printf '' >&2; printf '\\244\\n'; echo err >&2`;

    await runCommand({
      ...commandIn(bench, script),
      onOutput: (text, stream) => {
        seen.push(`${stream}:${text}`);
      },
    });

    expect(seen.filter((one) => one.startsWith('stdout')).join('')).toBe('stdout:ä\n');
    expect(seen).toContain('stderr:err\n');
  });

  test('has an empty standard input', async () => {
    const bench = await createWorkbench();

    expect((await runCommand(commandIn(bench, 'cat; echo end'))).output).toBe('end\n');
  });

  test.each<[string, Partial<Command>, RegExp]>([
    ['a program that does not exist', { argv: ['/no/such/program'] }, /ENOENT/],
    ['a folder that does not exist', { cwd: '/no/such/folder' }, /no\/such\/folder/],
    ['an argument with a NUL byte', { argv: ['/bin/echo', 'a\0b'] }, /null bytes/],
  ])('that cannot start says so: %s', async (_, change, message) => {
    const bench = await createWorkbench();

    const result = await runCommand({ ...commandIn(bench, ''), ...change });

    expect(result).toMatchObject({ exitCode: null, timedOut: false, aborted: false });
    expect(result.output).toMatch(message);
  });

  test('that a signal ends returns 128 + n, as in a shell', async () => {
    const bench = await createWorkbench();

    expect((await runCommand(commandIn(bench, 'kill -SEGV $$'))).exitCode).toBe(139);
  });

  test('that is aborted before it starts does not run', async () => {
    const bench = await createWorkbench();
    bench.abort.abort();

    const result = await runCommand(commandIn(bench, 'touch made'));

    expect(result).toMatchObject({ exitCode: null, aborted: true });
    expect(await bench.files()).toEqual([]);
  });
});

describe('no process of a command outlives it', () => {
  test('after a timeout, even one that ignores SIGTERM', async () => {
    const bench = await createWorkbench();

    const result = await runCommand({ ...commandIn(bench, stubbornTree), timeoutMs: 300 });

    expect(result).toMatchObject({ exitCode: null, timedOut: true, aborted: false });
    const pids = pidsIn(result.output);
    expect(pids).toHaveLength(4);
    expect(await Promise.all(pids.map(isAlive))).toEqual([false, false, false, false]);
  });

  test('after an abort, even one that ignores SIGTERM', async () => {
    const bench = await createWorkbench();
    let output = '';

    const result = await runCommand({
      ...commandIn(bench, stubbornTree),
      onOutput: (text) => {
        output += text;
        if (pidsIn(output).length === 4 && output.includes('ready')) bench.abort.abort();
      },
    });

    expect(result).toMatchObject({ exitCode: null, timedOut: false, aborted: true });
    expect(await Promise.all(pidsIn(output).map(isAlive))).toEqual([false, false, false, false]);
  });

  test('after it ended by itself and left one in the background', async () => {
    const bench = await createWorkbench();

    const result = await runCommand(commandIn(bench, 'sleep 300 & echo $!'));

    expect(result).toMatchObject({ exitCode: 0, leftProcesses: true });
    expect(await Promise.all(pidsIn(result.output).map(isAlive))).toEqual([false]);
  });

  test('when our own process exits', async () => {
    const bench = await createWorkbench();
    const before = process.listeners('exit');

    const result = await runCommand({
      ...commandIn(bench, `trap '' TERM; echo $$; sleep 300 & wait`),
      onOutput: () => {
        for (const listener of process.listeners('exit').filter((one) => !before.includes(one)))
          listener(0);
      },
    });

    expect(result).toMatchObject({ exitCode: 137, leftProcesses: false });
    expect(process.listeners('exit')).toEqual(before);
  });
});

test.each([
  ['left the group', 'setsid sleep 300 & echo $!; sleep 0.2'],
  ['became a daemon', "setsid sh -c 'sleep 300 & echo $!' & wait"],
  ['ignores SIGTERM too', `setsid sh -c 'trap "" TERM; sleep 300' & echo $!; sleep 0.2`],
])('a process that %s is ended with the command', async (_, script) => {
  const bench = await createWorkbench();

  const result = await runCommand(commandIn(bench, script));

  expect(result).toMatchObject({ exitCode: 0, leftProcesses: true });
  expect(pidsIn(result.output)).toHaveLength(1);
  expect(await Promise.all(pidsIn(result.output).map(isAlive))).toEqual([false]);
});

test('the end of a command leaves a concurrent one alone', async () => {
  const bench = await createWorkbench();
  const long = runCommand(commandIn(bench, 'sleep 0.5; echo whole'));

  await runCommand(commandIn(bench, 'true'));

  expect((await long).output).toBe('whole\n');
});

test('a flood of output is cut and does not grow our memory', async () => {
  const bench = await createWorkbench();
  const before = process.memoryUsage().rss;
  let peak = before;

  const result = await runCommand({
    ...commandIn(bench, 'yes | head -c 100000000'),
    onOutput: () => {
      peak = Math.max(peak, process.memoryUsage().rss);
    },
  });

  expect(result).toMatchObject({ exitCode: 0, truncatedBytes: 100_000_000 - 8_192 });
  expect(Buffer.byteLength(result.output)).toBeLessThan(8_192 + 64);
  expect(peak - before).toBeLessThan(64 * 1024 * 1024);
});

test('endless output ends at the timeout', async () => {
  const bench = await createWorkbench();

  const result = await runCommand({ ...commandIn(bench, 'yes'), timeoutMs: 300 });

  expect(result).toMatchObject({ exitCode: null, timedOut: true });
  expect(Buffer.byteLength(result.output)).toBeLessThan(8_192 + 64);
});

test('a flood is read with pauses, so that it does not take a whole core', async () => {
  const bench = await createWorkbench();
  const began = performance.now();

  const { truncatedBytes } = await runCommand({ ...commandIn(bench, 'yes'), timeoutMs: 500 });

  const mebibytesPerSecond = truncatedBytes / 1024 ** 2 / ((performance.now() - began) / 1_000);
  expect(mebibytesPerSecond).toBeLessThan(200);
});

/** Waits without a turn of the event loop. */
const standStillUntil = (isSo: () => boolean): void => {
  for (const deadline = performance.now() + 20_000; !isSo(); )
    if (performance.now() > deadline) throw new Error('it does not come about');
};

const hasEnded = (pid: number | undefined): boolean =>
  / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

test('output that comes while the event loop stands still is not lost', async () => {
  const bench = await createWorkbench();
  const [go, pidFile] = [join(bench.root, 'go'), join(bench.root, 'pid')];
  execFileSync('mkfifo', [go]);
  const running = runCommand(commandIn(bench, 'echo $$ > pid; read line < go; echo whole'));
  await vi.waitFor(() => expect(readFileSync(pidFile, 'utf8')).not.toBe(''));
  const pid = Number(readFileSync(pidFile, 'utf8'));
  const first = spawn('echo', ['first']);
  const last = spawn('true');
  // In one turn of the loop: the output of the first, then all that ended, the command before the
  // last.
  first.stdout.once('data', () => {
    writeFileSync(go, 'go\n');
    standStillUntil(() => hasEnded(pid));
  });
  last.once('exit', () => {
    const until = performance.now() + 1_000;
    standStillUntil(() => performance.now() > until);
  });
  standStillUntil(() => hasEnded(first.pid) && hasEnded(last.pid));

  expect((await running).output).toBe('whole\n');
});

test('the environment of children is an allow-list', () => {
  const environment = childEnvironment({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C.UTF-8',
    TERM: 'xterm',
    OPENAI_API_KEY: 'secret',
    AGENT_SERVER_TOKEN: 'secret',
    NODE_OPTIONS: '--require /evil.js',
    LANG: undefined,
  });

  expect(environment).toEqual({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C.UTF-8',
    TERM: 'dumb',
    CI: 'true',
    NO_COLOR: '1',
  });
});
