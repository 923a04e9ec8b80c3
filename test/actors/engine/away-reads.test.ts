import { expect, test, vi } from 'vitest';
import { type Store, StoreAwayError } from '../../../src/actors/store/port.ts';
import type { Tracker } from '../../../src/actors/tracker/port.ts';
import { ServiceError } from '../../../src/machines/errors.ts';
import { embeddedAt } from '../../support/ledger.ts';
import { bash, finish, startSystem } from '../../support/running.ts';

const away = new StoreAwayError('the database does not answer');
const detail = { detail: away.message, remedy: 'wait' };
const trackerAway = new ServiceError('tracker_unavailable', detail, { cause: away });

const storeReads: readonly (keyof Store)[] = [
  ...(['actor', 'actors', 'steps', 'attempts', 'latest', 'read', 'takeOver'] as const),
  ...(['removed', 'request'] as const),
];
const trackerReads: readonly (keyof Tracker)[] = ['find', 'findMany', 'prepare'];

/** The same object, whose methods of these names ask `before` first. */
const asking = <Given extends object>(
  given: Given,
  names: readonly PropertyKey[],
  before: () => void,
): Given =>
  new Proxy(given, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || !names.includes(name)) return value;
      return async (...values: unknown[]) => {
        before();
        return value.apply(target, values);
      };
    },
  });

/** Runs a task while the store is away at three reads, from this one on. @returns how many there were */
const runWithOutage = async (from: number): Promise<number> => {
  let [reads, failures, isAway] = [0, 0, false];
  const opened: { near?: Store } = {};
  const failWith = (error: Error) => (): void => {
    if (!isAway) return;
    reads += 1;
    if (reads < from || failures >= 3) return;
    failures += 1;
    throw error;
  };
  const running = await startSystem({
    turns: [bash('true'), finish()],
    options: { maxRetries: 0 },
    store: (given) => {
      opened.near = given;
      return asking(given, storeReads, failWith(away));
    },
    tracker: (root, ledger) =>
      asking(embeddedAt(root, {}, ledger), trackerReads, failWith(trackerAway)),
  });
  const first = await running.service.create({ description: 'x' });
  await running.service.close(first.task_id, null);
  const dependencies = [first.task_id];
  const { task_id } = await running.service.create({ description: 'y', dependencies });
  const run = { task: task_id, role: 'engineer', options: {} } as const;
  isAway = true;
  // A request that could not be looked up is refused, and can be sent again.
  const send = (tries: number): Promise<unknown> =>
    running.service.execute(run).catch((error: unknown) => {
      if (tries === 1) throw error;
      return send(tries - 1);
    });
  await send(4);

  await vi.waitFor(async () => expect(await opened.near?.attempts(task_id)).toHaveLength(1), {
    timeout: 20_000,
    interval: 20,
  });
  isAway = false;
  expect(await opened.near?.attempts(task_id)).toMatchObject([{ attempt: 1, status: 'complete' }]);
  return reads;
};

test('wherever an attempt reads, it goes on when the store was away', {
  tags: ['slow'],
  timeout: 300_000,
}, async () => {
  const reads = await runWithOutage(Number.POSITIVE_INFINITY);
  expect(reads).toBeGreaterThan(4);
  for (let from = 1; from <= reads; from += 1) {
    await runWithOutage(from);
  }
});
