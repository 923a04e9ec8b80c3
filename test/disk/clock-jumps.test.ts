import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { openProject } from '../support/cli.ts';
import { isLong } from '../support/long.ts';
import { startModelServer } from '../support/model-server.ts';
import { noFaketime, testUnless } from '../support/needs.ts';
import { randomFrom, seed } from '../support/random.ts';
import { clientOf } from './support/client.ts';
import { createFakeClock } from './support/fake-clock.ts';
import { differencesIn } from './support/scene.ts';

const hour = 3_600_000;
const noEffect = 'libfaketime has no effect on this Node';
const key = { OPENAI_API_KEY: 'key-of-nobody' };

const call = (name: string, args: object) => ({
  id: 'call_1',
  name,
  arguments: JSON.stringify(args),
});
const finish = [call('finish', { status: 'done', summary: 'done' })];

/**
 * A project whose tasks do what the first word of their title says. `pause`: for how long a model
 * wants to be left alone (s).
 */
const openTasks = async () => {
  const asked = new Set<string>();
  const given = { pause: 1 };
  const { baseURL } = await startModelServer(({ body }) => {
    const text = JSON.stringify(body);
    const [title = '', kind] = /(hangs|asks|pauses|waits) \d+/.exec(text) ?? [];
    const first = !asked.has(title);
    asked.add(title);
    if (kind === 'pauses' && first)
      return { kind: 'status', status: 503, headers: { 'retry-after': String(given.pause) } };
    if (kind === 'hangs')
      return { kind: 'answer', calls: [call('bash', { command: 'exec sleep 600' })] };
    if (kind === 'asks' && first)
      return { kind: 'answer', calls: [call('ask', { question: 'red or blue?' })] };
    return { kind: 'answer', calls: finish };
  });
  const project = openProject(
    {
      server: { port: 0, register_protocol_handler: false, max_concurrent_agents: 2 },
      api: { base_url: baseURL, protocol: 'chat' },
      agent: { on_interrupted: 'repeat', answer_timeout_seconds: 1_800, max_retries: 0 },
      tracker: { mode: 'embedded' },
    },
    { ownServer: true },
  );
  let tasks = 0;
  const serve = async (env: NodeJS.ProcessEnv) => {
    const child = project.start('agent-server', ['--server'], { ...key, ...env });
    const client = await clientOf(project, child.pid);
    const begin = async (kind: string, options: object = {}): Promise<string> => {
      tasks += 1;
      const task_id =
        (await client.call('create', { description: `${kind} ${tasks}` })).result?.task_id ?? '';
      await client.call('execute', { task_id, role: 'engineer', options });
      return task_id;
    };
    const reached = async (id: string, phase: string): Promise<void> => {
      while ((await client.viewOf(id)).phase !== phase) await delay(20);
    };
    return { ...client, begin, reached, pid: child.pid ?? 0 };
  };
  return { ...project, given, serve };
};

/** What a process has computed so far (ms). */
const computedMs = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user + system) * 10;
};

const timesIn = (stateDir: string): readonly number[] => {
  const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
  const times = store.read({ after: 0, limit: 1_000_000 }).map(({ at }) => at);
  store.close();
  return times;
};

testUnless(noFaketime)(
  'with the clock set forward and back deadlines fire in time, and nothing is lost or loops',
  {
    tags: ['slow'],
    timeout: 60_000 + (isLong ? 24 : 0) * 15_000,
  },
  async (context) => {
    const clock = createFakeClock();
    if (clock === null) return context.skip(noEffect);
    const random = randomFrom(seed);
    // Less than a day: no task may take longer than that.
    const sizes = [1, 20, 1 + random() * 20];
    const jumps = isLong
      ? Array.from(
          { length: 24 },
          (_, n) => (n % 2 === 0 ? -1 : 1) * (sizes[Math.floor(random() * 3)] ?? 1) * hour,
        )
      : [-3 * hour, hour];
    const project = await openTasks();
    const { begin, reached, ended, viewOf, pid, call } = await project.serve(clock.env);
    let [offset, highest] = [0, 0];
    const slowest = { back: 0, forth: 0 };

    for (const jump of jumps) {
      const back = jump < 0;
      project.given.pause = back ? 1 : 200;
      const limited = await begin('hangs', { timeout_seconds: back ? 2 : 1_200 });
      const asks = await begin('asks');
      const pauses = await begin('pauses', { timeout_seconds: 86_400 });
      const waits = await begin('waits');
      await reached(limited, 'acting');
      await reached(asks, 'awaiting_input');
      await reached(pauses, 'backing_off');
      await reached(waits, 'waiting_for_slot');
      // Forth is ahead of every time that has been; what was only set back and put right again is
      // no time that has passed.
      offset = back ? offset + jump : highest + jump;
      highest = Math.max(highest, offset);
      clock.set(offset);
      const [began, computed] = [performance.now(), computedMs(pid)];

      expect(await ended(limited)).toBe('failed');
      expect(await ended(pauses)).toBe('complete');
      const tookMs = performance.now() - began;
      const busy = (computedMs(pid) - computed) / tookMs;
      if (back) {
        expect((await viewOf(asks)).phase).toBe('awaiting_input');
        const answer = { task_id: asks, attempt: 1, input_id: 'input-1', text: 'blue' };
        expect((await call('respond', answer)).error).toBeUndefined();
      }
      expect([await ended(asks), await ended(waits)]).toEqual([
        back ? 'complete' : 'failed',
        'complete',
      ]);
      expect((await viewOf(limited)).error).toMatchObject({ code: 'timed_out' });
      expect(tookMs).toBeLessThan((isLong ? 1 : 5) * (back ? 7_000 : 5_000));
      expect(busy).toBeLessThan(0.5);
      slowest[back ? 'back' : 'forth'] = Math.max(
        slowest[back ? 'back' : 'forth'],
        Math.round(tookMs),
      );
    }

    await project.stopServer();
    const times = timesIn(project.stateDir);
    expect((await differencesIn(project.stateDir)).differences).toEqual([]);
    expect(times.filter((at, index) => at < (times[index - 1] ?? 0))).toEqual([]);
    process.stdout.write(
      `clock, seed ${seed}: ${jumps.length} jumps (${jumps.map((jump) => `${(jump / hour).toFixed(1)} h`).join(', ')}), the slowest deadlines ${slowest.back} ms after one back, ${slowest.forth} ms after one forth, ${times.length} entries\n`,
    );
  },
);

testUnless(noFaketime)(
  'a clock that was set back while no server ran extends no deadline',
  {
    tags: ['slow'],
  },
  async (context) => {
    const clock = createFakeClock();
    if (clock === null) return context.skip(noEffect);
    const project = await openTasks();
    const first = await project.serve(clock.env);
    const limited = await first.begin('hangs', { timeout_seconds: 2 });
    await first.reached(limited, 'acting');
    await project.stopServer('SIGKILL');
    clock.forget(first.pid);
    clock.set(-3 * hour);

    const { ended, viewOf } = await project.serve(clock.env);
    const began = performance.now();

    expect(await ended(limited)).toBe('failed');
    expect(performance.now() - began).toBeLessThan(40_000);
    expect((await viewOf(limited)).error).toMatchObject({ code: 'timed_out' });
    await project.stopServer();
    expect((await differencesIn(project.stateDir)).differences).toEqual([]);
  },
);
