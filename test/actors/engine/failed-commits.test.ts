import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Change, Store } from '../../../src/actors/store/port.ts';
import type { SqliteStore } from '../../../src/actors/store/sqlite.ts';
import { createFarStore, type Fate } from '../../simulation/far-store.ts';
import { bash, finish, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** A store in which the commits of an agent that begins to act have these fates, by turns. */
const withFates = (...fates: readonly Fate[]) => {
  const left = [...fates];
  const ways: Promise<void>[] = [];
  let next: Fate = 'answered';
  const isHit = ({ actor }: Change): boolean =>
    actor?.snapshot.includes('"value":"acting"') === true;
  const store = (near: SqliteStore): Store => {
    const far = createFarStore(near, {
      fate: () => next,
      delay: () => 0,
      after: (ms, run) => void ways.push(delay(ms).then(run)),
      lateMs: 4_500,
    });
    return {
      ...far,
      commit: (...changes) => {
        next = changes.some(isHit) ? (left.shift() ?? 'answered') : 'answered';
        return far.commit(...changes);
      },
    };
  };
  /** Resolves when everything has arrived. */
  const allArrived = async (): Promise<void> => {
    for (const way of ways) await way;
  };
  return { store, allArrived };
};

test.each<[string, readonly Fate[]]>([
  ['fails before it is written', ['failed before']],
  ['fails after it is written', ['failed after']],
  ['is never answered and written late', ['late']],
])(
  'an attempt goes on when a commit of its agent %s; nothing is done twice',
  { tags: ['slow'] },
  async (_, fates) => {
    const { store, allArrived } = withFates(...fates);
    const running = await startSystem({ store, turns: [bash('echo once >> log'), finish('done')] });
    const { service, logged } = running;
    const { task_id } = await service.create({ description: 'x' });

    await service.execute({ task: task_id, role: 'engineer', options: {} });
    const view = await untilStatus(running, task_id, 'complete', 'failed');

    await allArrived();
    expect(view).toMatchObject({ status: 'complete', attempt: 1 });
    const entries = running.store.read({ after: 0, limit: 1_000 });
    const count = (type: string) => entries.filter((entry) => entry.type === type).length;
    expect([count('tool_start'), count('completed')]).toEqual([2, 1]);
    expect(logged).toEqual([]);
  },
);

test('an attempt goes on when a commit of its agent fails again and again', {
  tags: ['slow'],
}, async () => {
  const fates = ['failed before', 'failed after', 'failed before', 'failed before'] as const;
  const { store } = withFates(...fates, ...fates);
  const root = temporaryFolder();
  const turns = [bash('echo once >> log'), finish('done')];
  const running = await startSystem({ store, root, turns });
  const { task_id } = await running.service.create({ description: 'x' });

  await running.service.execute({ task: task_id, role: 'engineer', options: {} });
  const view = await untilStatus(running, task_id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', attempt: 1, usage: { turns: 2 } });
  // Its intent is saved, and nobody learned of it: as after a crash, the call is not made again.
  expect(existsSync(join(root, 'log'))).toBe(false);
});
