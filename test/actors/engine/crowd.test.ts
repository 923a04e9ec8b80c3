import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { isServiceError } from '../../../src/machines/errors.ts';
import { atOnce } from '../../simulation/at-once.ts';
import { randomFrom } from '../../simulation/random.ts';
import { finish, type Running, startSystem, untilStatus } from '../../support/running.ts';

/** Many tasks at once, and who of them gets what, when. */

const run = ({ service }: Running, task: string) =>
  service.execute({ task, role: 'engineer', options: {} });
const many = async ({ service }: Running, count: number): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1)
    ids.push((await service.create({ description: `task ${n}` })).task_id);
  return ids;
};
const isLive = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'started' in value;
const short = { calls: [{ tool: 'bash', arguments: { command: 'sleep 0.0$(($$ % 9))' } }] };

test('50 runs never hold more slots than the cap of that moment, which changes while they run', {
  tags: ['slow'],
}, async () => {
  const running = await startSystem({
    turns: [short, finish()],
    options: { cap: 3, queueLimit: 100 },
  });
  const ids = await many(running, 50);
  const { system, store } = running;
  const live = new Map<string, boolean>();
  const begun: { readonly holding: number; readonly cap: number }[] = [];
  let most = 0;
  system.journal.onCommit((entries) => {
    for (const { type, taskId, data } of entries) {
      if (type !== 'snapshot' || !data.startsWith('{"machine":"task"')) continue;
      const began = isLive(JSON.parse(data).value) && live.get(taskId) !== true;
      live.set(taskId, isLive(JSON.parse(data).value));
      const holding = [...live.values()].filter(Boolean).length;
      most = Math.max(most, holding);
      if (began) begun.push({ holding, cap: system.settings().cap });
    }
    const done = entries.some(({ type }) => type === 'completed')
      ? atOnce(system.counters()).completed
      : 0;
    const cap = done >= 20 ? 5 : done >= 5 ? 1 : 3;
    // Not in the midst of a commit: a slot that was given right before is shown first.
    if (done > 0) setImmediate(() => system.reconfigure({ ...system.settings(), cap }));
  });

  await Promise.all(ids.map((id) => run(running, id)));
  await Promise.all(ids.map((id) => untilStatus(running, id, 'complete')));

  expect(begun).toHaveLength(50);
  expect(begun.filter(({ holding, cap }) => holding > cap)).toEqual([]);
  expect(new Set(begun.map(({ cap }) => cap))).toEqual(new Set([3, 1, 5]));
  expect(most).toBe(5);
  expect(store.tasks('pending')).toEqual([]);
});

test('waiting costs nothing: of 20 who wait for one slot each gets it in its turn, for its first attempt', {
  tags: ['slow'],
}, async () => {
  const running = await startSystem({ turns: [finish()], options: { cap: 0 } });
  const ids = await many(running, 20);
  const claimed: string[] = [];
  const { prepare } = running.tracker;
  running.tracker.prepare = (change, preparation) => {
    if (change.kind === 'claim') claimed.push(change.id);
    return prepare(change, preparation);
  };
  for (const id of ids) await run(running, id);
  const waiting = await Promise.all(ids.map((id) => running.service.status(id)));

  running.system.reconfigure({ ...running.system.settings(), cap: 1 });
  const views = await Promise.all(ids.map((id) => untilStatus(running, id, 'complete')));

  expect(new Set(waiting.map(({ phase, attempt }) => `${phase} ${attempt}`))).toEqual(
    new Set(['waiting_for_slot 0']),
  );
  expect(claimed).toEqual(ids);
  expect(new Set(views.map(({ attempt }) => attempt))).toEqual(new Set([1]));
});

test('three tasks of one role that begin in the same millisecond have attempts, folders and streams of their own', async () => {
  const running = await startSystem({ turns: [finish()] });
  const ids = await many(running, 3);
  const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now());

  await Promise.all(ids.map((id) => run(running, id)));
  now.mockRestore();
  const views = await Promise.all(ids.map((id) => untilStatus(running, id, 'complete')));

  expect(new Set(views.map(({ results_path }) => results_path)).size).toBe(3);
  for (const [index, { task_id, results_path }] of views.entries()) {
    const results = join(running.root, results_path ?? '');
    expect(existsSync(results)).toBe(true);
    expect(readFileSync(results, 'utf8')).toMatch(new RegExp(`^# task ${index}\n`));
    const frames = running.store.read({ taskId: task_id, after: 0, limit: 1_000 });
    expect(frames.filter(({ type }) => type === 'completed')).toHaveLength(1);
  }
});

test('a hundred who wait ask the tracker for nothing: it is looked at as a whole, and seldom', {
  tags: ['slow'],
}, async () => {
  const running = await startSystem({ options: { cap: 0, queueLimit: 200 } });
  const ids = await many(running, 100);
  for (const id of ids) await run(running, id);
  const asked: string[] = [];
  const { tracker } = running;
  const counted = { find: tracker.find, changes: tracker.changes, prepare: tracker.prepare };
  tracker.find = (...args) => {
    asked.push('find');
    return counted.find(...args);
  };
  tracker.prepare = (...args) => {
    asked.push('prepare');
    return counted.prepare(...args);
  };
  const began = Date.now();
  await new Promise<void>((resolve) => {
    tracker.changes = (...args) => {
      asked.push('changes');
      if (asked.length >= 2) resolve();
      return counted.changes(...args);
    };
  });

  expect(asked).toEqual(['changes', 'changes']);
  expect(Date.now() - began).toBeGreaterThan(1_000);
  expect(running.system.slotUse()).toMatchObject({ running: 0, waiting: 100 });
});

test.each([7, 42, 1_999])(
  'in a random plan (seed %d) none begins before what it depends on is complete, and who never can says why',
  async (seed) => {
    const random = randomFrom(seed);
    const size = 14;
    const doomed = new Set([random.below(5), 5 + random.below(5)]);
    const running = await startSystem({
      options: { cap: 4 },
      model: {
        name: 'planned',
        disclaimer: null,
        async *ask({ asker }) {
          const failed = doomed.has(Number(asker.title.split(' ')[1]));
          const [call] = finish('so it is', failed ? 'failed' : 'done').calls;
          const calls = [{ id: 'a', tool: 'finish', arguments: JSON.stringify(call?.arguments) }];
          yield {
            type: 'answered',
            text: '',
            calls,
            truncated: false,
            usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
          };
        },
      },
    });
    const { service, tracker } = running;
    const needs = new Map<string, readonly string[]>();
    for (let n = 0; n < size; n += 1) {
      const dependencies = [...needs.keys()].filter(() => random.chance(0.25));
      needs.set(
        (await service.create({ description: `task ${n}`, dependencies })).task_id,
        dependencies,
      );
    }
    const closed = new Set<string>();
    const tooEarly: string[] = [];
    const { prepare } = tracker;
    tracker.prepare = (change, preparation) => {
      const { kind, id } = change;
      const isEarly = !(needs.get(id) ?? []).every((needed) => closed.has(needed));
      if (kind === 'claim' && isEarly) tooEarly.push(id);
      if (kind === 'close') closed.add(id);
      return prepare(change, preparation);
    };

    const ids = [...needs.keys()];
    const lost = (id: string): boolean =>
      doomed.has(ids.indexOf(id)) || (needs.get(id) ?? []).some((needed) => lost(needed));
    const settled = new Set<string>();
    for (let before = -1; settled.size > before; ) {
      before = settled.size;
      // Everything is asked for, again and again; only what may begin does.
      const accepted = await Promise.all(
        ids
          .filter((id) => !settled.has(id))
          .map(async (id) => {
            try {
              await run(running, id);
              return id;
            } catch (error) {
              if (!isServiceError(error) || error.code !== 'dependencies_unmet') throw error;
              return null;
            }
          }),
      );
      for (const id of accepted.filter((each) => each !== null)) {
        await untilStatus(running, id, 'complete', 'failed');
        settled.add(id);
      }
    }

    const views = await Promise.all(ids.map((id) => service.status(id)));
    expect(tooEarly).toEqual([]);
    expect(views.map(({ status }) => status)).toEqual(
      ids.map((id, index) =>
        doomed.has(index) && !(needs.get(id) ?? []).some(lost)
          ? 'failed'
          : lost(id)
            ? 'queued'
            : 'complete',
      ),
    );
    for (const { task_id, status } of views)
      if (status === 'queued')
        expect((await service.explain(task_id)).reason).toMatch(/bd-\w+ \((failed|queued)/);
  },
);
