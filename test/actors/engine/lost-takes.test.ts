import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { type Store, StoreAwayError } from '../../../src/actors/store/port.ts';
import type { SqliteStore } from '../../../src/actors/store/sqlite.ts';
import { bash, finish, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const away = (): StoreAwayError => new StoreAwayError('the connection broke');
const turns = [bash('until test -e go; do sleep 0.05; done', 60), finish('done')];
const options = { leaseMs: 600, cap: 2, sharedCap: 2, onInterrupted: 'repeat' as const };

/** The first take that gets something is carried out, and what follows fails as given. */
const losing =
  (what: 'its answer' | 'what follows') =>
  (near: SqliteStore): Store => {
    let isLost = false;
    let awayUntil = 0;
    const read =
      <Args extends readonly unknown[], Result>(of: (...args: Args) => Result) =>
      (...args: Args): Result => {
        if (performance.now() < awayUntil) throw away();
        return of(...args);
      };
    const take =
      <Args extends readonly unknown[], Taken>(
        of: (...args: Args) => Taken | Promise<Taken>,
        isAny: (taken: Taken) => boolean,
      ) =>
      async (...args: Args): Promise<Taken> => {
        const taken = await of(...args);
        if (isLost || !isAny(taken)) return taken;
        isLost = true;
        if (what === 'its answer') throw away();
        awayUntil = performance.now() + 1_000;
        return taken;
      };
    return {
      ...near,
      actors: read(near.actors),
      pendingOf: read(near.pendingOf),
      takeOverFrom: take(near.takeOverFrom, (ids) => ids.length > 0),
      takeWaiting: take(near.takeWaiting, (tasks) => tasks.length > 0),
    };
  };

test.each(['its answer', 'what follows'] as const)(
  'a take-over of which %s is lost is made up for: the attempts go on',
  { timeout: 60_000 },
  async (what) => {
    const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
    const setting = { root, stateDir, turns, options, tampered: true };
    const first = await startSystem({ ...setting, sharedAs: 'first' });
    const { task_id } = await first.service.create({ description: 'x' });
    await first.service.execute({ task: task_id, role: 'engineer', options: {} });
    await expect
      .poll(async () => (await first.service.status(task_id)).phase, { timeout: 20_000 })
      .toBe('acting');

    const second = await startSystem({ ...setting, sharedAs: 'second', store: losing(what) });
    await first.stop();
    writeFileSync(join(root, 'go'), '');

    const view = await untilStatus(second, task_id, 'complete');
    expect(view.attempt).toBe(1);
    expect(second.system.notLoaded()).toEqual([]);
    expect(second.logged.map(({ message }) => message)).toContainEqual(
      'continues tasks that it has, and had not loaded',
    );
  },
);

test('a waiting task that was taken from another server runs, though the answer was lost', {
  tags: ['slow'],
  timeout: 60_000,
}, async () => {
  const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
  const setting = { root, stateDir, turns, tampered: true };
  const first = await startSystem({
    ...{ ...setting, sharedAs: 'first', options: { ...options, cap: 1 } },
  });
  const ids: string[] = [];
  for (const description of ['runs', 'waits']) {
    const { task_id } = await first.service.create({ description });
    await first.service.execute({ task: task_id, role: 'engineer', options: {} });
    ids.push(task_id);
  }
  const store = losing('its answer');
  const second = await startSystem({ ...setting, options, sharedAs: 'second', store });

  await expect
    .poll(async () => (await second.service.status(ids[1] ?? '')).phase, { timeout: 20_000 })
    .toBe('acting');
  const owner = second.store.actor(ids[1] ?? '')?.owner;
  writeFileSync(join(root, 'go'), '');
  // Who does not run a task need not hear of its end.
  await vi.waitFor(async () => {
    for (const id of ids) expect(await second.store.latest(id, 'completed')).not.toBeNull();
  });

  expect(owner).toContain('second@');
});
