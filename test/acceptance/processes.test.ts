import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { createBubblewrap } from '../../src/actors/sandbox/bubblewrap.ts';
import { openProject, plain } from '../support/cli.ts';
import { isLong } from '../support/long.ts';
import { describeUnless, noSandbox } from '../support/needs.ts';
import { bash, finish, startSystem, type Turn } from '../support/running.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

/** Counts the processes with this text in their command line, including those in sandboxes. */
const countOf = (mark: string, where: 'anywhere' | 'first' = 'anywhere'): number => {
  const lines = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => textOf(`/proc/${pid}/cmdline`));
  return lines.filter((line) => (where === 'first' ? line.startsWith(mark) : line.includes(mark)))
    .length;
};

const until = async (what: () => boolean): Promise<number> => {
  const began = performance.now();
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 20));
  return performance.now() - began;
};

/** A server whose commands run in the sandbox, and a background run of these turns. */
const run = async (turns: readonly Turn[]) => {
  const project = openProject(undefined, { ownServer: true });
  const script = join(dirname(project.configFile), 'script.json');
  writeFileSync(
    script,
    JSON.stringify({ scripts: [{ turns: turns.map((turn) => ({ say: '', ...turn })) }] }),
  );
  const config = { ...plain, sandbox: { mode: 'required' }, api: { backend: 'scripted', script } };
  writeFileSync(project.configFile, JSON.stringify(config));
  expect((await project.agent('server', 'start')).code).toBe(0);
  const id = (await project.agent('create', 'Do it')).out.trim();
  expect((await project.agent('--async', 'engineer', id)).code).toBe(0);
  return { ...project, id, pid: project.serverFile().pid as number };
};

describeUnless(noSandbox)('commands of a server', () => {
  /**
   * A shell, a background process, one that left the session, and one without a parent; all ignore
   * SIGTERM.
   */
  const plantTree = (mark: string): Turn => {
    const sleep = `trap "" TERM; exec -a ${mark} sleep 600`;
    return bash(
      `exec bash <<'END'\n(${sleep}) & setsid bash -c '${sleep}' & (setsid bash -c '${sleep}' &); ${sleep}\nEND\n`,
      600,
    );
  };
  const untilNone = async (mark: string): Promise<number> => until(() => countOf(mark) === 0);

  test('A24 none of four processes runs 2 s after the task is cancelled', async () => {
    const mark = `cancelled-${process.pid}-${Date.now()}`;
    const running = await startSystem({ turns: [plantTree(mark), finish()], sandbox });
    const { task_id: id } = await running.service.create({ description: 'a task' });
    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await until(() => countOf(mark, 'first') === 4);

    const [took] = await Promise.all([untilNone(mark), running.service.cancel(id, null)]);

    expect(took).toBeLessThan(isLong ? 6_000 : 20_000);
  });

  test('A24 none of four processes runs 2 s after the server is killed', async () => {
    const mark = `killed-${process.pid}-${Date.now()}`;
    const { pid } = await run([plantTree(mark), finish()]);
    await until(() => countOf(mark, 'first') === 4);

    process.kill(pid, 'SIGKILL');

    expect(await untilNone(mark)).toBeLessThan(isLong ? 6_000 : 20_000);
  });

  test('A25 endless output ends at the timeout, is cut, and does not grow the memory', {
    tags: ['slow'],
  }, async () => {
    const seconds = isLong ? 10 : 1;
    const wait = (name: string) => bash(`until test -e ${name}; do sleep 0.05; done`);
    // The first flood fills the young part of V8's heap, which the process then keeps.
    const warmUp = bash('yes | head -c 64000000');
    const turns = [warmUp, wait('go'), bash('yes', seconds), wait('gone'), finish()];
    const { agent, id, pid, root } = await run(turns);
    const memory = () => Number(/VmRSS:\s+(\d+)/.exec(textOf(`/proc/${pid}/status`))?.[1]) * 1_024;
    const isWaitingFor = (name: string) => countOf(`test -e ${name};`) > 0;

    await until(() => isWaitingFor('go'));
    const before = memory();
    let most = before;
    writeFileSync(join(root, 'go'), '');
    await until(() => {
      most = Math.max(most, memory());
      return isWaitingFor('gone');
    });
    writeFileSync(join(root, 'gone'), '');
    const { out } = await agent('logs', '-f', id, '--json');

    const frames = out
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    const ends = frames.filter(({ type }) => type === 'tool_end').map(({ data }) => data);
    expect(ends.map(({ ok }) => ok)).toEqual([true, true, false, true, true]);
    const data = ends[2];
    expect(Buffer.byteLength(data.output)).toBeLessThanOrEqual(16_384);
    expect(data.duration_ms - seconds * 1_000).toBeLessThan(3_000);
    expect(most - before).toBeLessThan(32 * 1024 ** 2);
  });
});
