import { expect, test } from 'vitest';
import { createActor, fromPromise, waitFor } from 'xstate';
import {
  carsToTest,
  inLandingOrder,
  type MergeQueueContext,
  type QueueMember,
  type Train,
} from '../../src/machines/merge-queue/merge-queue-context.ts';
import { mergeQueueMachine } from '../../src/machines/merge-queue/merge-queue-machine.ts';
import { memberOf } from '../support/land-alone.ts';
import { randomFrom, seed } from '../support/random.ts';

/** Sets of members that do not pass together; each set fails as soon as all of it is on the branch. */
type Culprits = readonly (readonly string[])[];

const isRed = (on: readonly string[], culprits: Culprits): boolean =>
  culprits.some((set) => set.every((id) => on.includes(id)));

/** A branch on which every member merges cleanly. */
const queueOf = (
  members: readonly QueueMember[],
  maxBatch: number,
  culprits: Culprits,
  beforeTest: () => Promise<void> = async () => {},
) => {
  const branch: string[] = [];
  const trees = new Set<string>();
  const contentOf = (context: MergeQueueContext, count: number): readonly string[] => [
    ...branch,
    ...(context.train?.cars ?? []).slice(0, count).map(({ taskId }) => taskId),
  ];
  const machine = mergeQueueMachine.provide({
    actors: {
      build: fromPromise(
        async ({ input }): Promise<Train> => ({
          ...{ into: 'main', head: branch.join(), tree: branch.join(), ended: [] },
          cars: input.batch.map(({ taskId, attempt }) => ({
            ...{ taskId, attempt, branch: `agent/${taskId}/1`, from: taskId, since: [] },
            ...{ tree: taskId, commit: taskId },
          })),
        }),
      ),
      test: fromPromise(async ({ input }) => {
        await beforeTest();
        const on = contentOf(input, carsToTest(input));
        trees.add(on.join());
        return isRed(on, culprits)
          ? { passed: false as const, why: 'red' }
          : { passed: true as const, commands: ['npm test'] };
      }),
      land: fromPromise(async ({ input }) => {
        const on = contentOf(input, input.green);
        if (!trees.has(on.join()) || isRed(on, culprits)) throw new Error(`untested: ${on}`);
        const commits = on.slice(branch.length).map((id) => `commit of ${id}`);
        branch.splice(0, branch.length, ...on);
        return { status: 'landed' as const, into: 'main', commits };
      }),
      tell: fromPromise(async () => {}),
    },
  });
  const actor = createActor(machine, { input: { queueId: 'mq-1', maxBatch, members } });
  return { machine, actor, branch, trees };
};

const run = async (members: readonly QueueMember[], maxBatch: number, culprits: Culprits) => {
  const { actor, branch, trees } = queueOf(members, maxBatch, culprits);
  actor.start();
  const { context } = await waitFor(actor, ({ status }) => status === 'done');
  const refused = context.outcomes.filter(({ merged }) => merged.status === 'conflict');
  return {
    branch,
    trees: trees.size,
    refused: refused.map(({ taskId }) => taskId as string),
    errors: refused.flatMap(({ merged }) => (merged.status === 'conflict' ? [merged.why] : [])),
    outcomes: context.outcomes,
  };
};

const members = (count: number): readonly QueueMember[] =>
  Array.from({ length: count }, (_, at) => memberOf(`bd-${String(at).padStart(3, '0')}`, 1));
const idAt = (at: number): string => `bd-${String(at).padStart(3, '0')}`;

test('ten that fit cost two tests with a batch of five', async () => {
  const { branch, trees, refused } = await run(members(10), 5, []);

  expect([branch.length, trees, refused]).toEqual([10, 2, []]);
});

test.each([2, 3, 5, 8, 13, 50])(
  'one culprit of %i is found within its trees, wherever it is, and the rest lands',
  async (count) => {
    for (let at = 0; at < count; at += 1) {
      const { branch, trees, refused } = await run(members(count), 50, [[idAt(at)]]);
      expect(refused).toEqual([idAt(at)]);
      expect(branch).toHaveLength(count - 1);
      expect(trees).toBeLessThanOrEqual(Math.ceil(Math.log2(count)) + 3);
    }
  },
);

test('of a pair that is red together the earlier one lands, and the later one names it', async () => {
  const { branch, refused, outcomes } = await run(members(5), 5, [[idAt(1), idAt(3)]]);

  expect(refused).toEqual([idAt(3)]);
  expect(branch).toEqual([0, 1, 2, 4].map(idAt));
  expect(outcomes.find(({ taskId }) => taskId === idAt(3))?.merged).toMatchObject({
    why: expect.stringMatching(/^it fails together with .*bd-001.* \(landed\): red$/),
    with: expect.arrayContaining([idAt(1)]),
  });
});

test('on a branch that is red by itself nothing lands, and nobody is blamed', async () => {
  const { branch, refused, errors } = await run(members(4), 5, [[]]);

  expect(branch).toEqual([]);
  expect(refused).toHaveLength(4);
  expect(new Set(errors)).toEqual(
    new Set([
      "the project's branch itself does not pass, without this work: red; merge what mends it by itself",
    ]),
  );
});

test('1,000 random trains: the branch is never at a tree that was not tested green, and the right ones are refused', async () => {
  const random = randomFrom(seed);
  const below = (most: number): number => Math.floor(random() * most);
  for (let round = 0; round < 1_000; round += 1) {
    const count = 1 + below(12);
    const all = members(count);
    const culprits = Array.from({ length: below(4) }, () =>
      Array.from({ length: 1 + below(2) }, () => idAt(below(count))),
    );
    const { branch, refused, errors } = await run(all, 1 + below(6), culprits);
    expect(errors.filter((why) => why.includes('untested'))).toEqual([]);
    // The first that fit, one after the other: no order of tests finds others.
    const fit: string[] = [];
    for (const { taskId } of all) if (!isRed([...fit, taskId], culprits)) fit.push(taskId);
    expect(branch).toEqual(fit);
    expect(new Set(refused)).toEqual(
      new Set(all.map(({ taskId }) => taskId as string).filter((id) => !fit.includes(id))),
    );
  }
});

test('dependencies land first, then the more urgent, then the older; a cycle begins somewhere', () => {
  const [a, b, c, d] = ['bd-a', 'bd-b', 'bd-c', 'bd-d'].map((id) => memberOf(id, 1));
  if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error();
  const given = [
    { ...a, priority: 0, after: [c.taskId] },
    { ...b, priority: 1, createdAt: '2026-02' },
    { ...c, priority: 4 },
    { ...d, priority: 1, createdAt: '2026-01' },
  ];
  const ids = (all: readonly QueueMember[]) => all.map(({ taskId }) => taskId as string);

  expect(ids(inLandingOrder(given))).toEqual(['bd-d', 'bd-b', 'bd-c', 'bd-a']);
  const round = [
    { ...a, after: [b.taskId] },
    { ...b, after: [a.taskId] },
  ];
  expect(ids(inLandingOrder(round))).toHaveLength(2);
});

test('what depends on a refused one is refused, also when it waits', async () => {
  const [first, ...rest] = members(7);
  const all = [first, ...rest].flatMap((member, at) =>
    member === undefined ? [] : [{ ...member, after: at === 6 && first ? [first.taskId] : [] }],
  );
  const { refused, errors } = await run(all, 3, [[idAt(0)]]);

  expect(refused).toEqual([idAt(0), idAt(6)]);
  expect(errors.at(-1)).toBe(`${idAt(0)}, which it depends on, is not merged`);
});

test('who leaves while it is tested does not land, and the others do', async () => {
  const held: { release?: () => void } = {};
  const firstTest = new Promise<void>((resolve) => {
    held.release = resolve;
  });
  const { actor, branch } = queueOf(members(3), 5, [], () => firstTest);
  actor.start();
  await waitFor(actor, (state) => state.matches('testing'));

  actor.send({ type: 'leave', ticket: `${idAt(1)}#1` });
  held.release?.();
  await waitFor(actor, ({ status }) => status === 'done');

  expect(branch).toEqual([idAt(0), idAt(2)]);
});

test('who joins while a batch is told is answered with it, and for work that was not judged with the next one', async () => {
  const { machine } = queueOf([], 2, []);
  const member = (id: string, ticket: string) => memberOf(id, 1, { tickets: [ticket] });
  const told: (readonly string[])[] = [];
  const telling = machine.provide({
    actors: {
      // The second one waits for those before it.
      build: fromPromise(async ({ input: { batch } }) => {
        const ended = batch.slice(0, 1).map(({ taskId, attempt }) => ({
          ...{ taskId, attempt, merged: { status: 'nothing' as const } },
        }));
        return { into: 'main', head: '', tree: '', cars: [], ended };
      }),
      tell: fromPromise(async ({ input: { batch, ended }, self }) => {
        const isTold = ({ taskId }: QueueMember) => ended.some((each) => each.taskId === taskId);
        told.push(batch.filter(isTold).flatMap(({ tickets }) => tickets));
        const members = [member('bd-a1', 'late'), member('bd-a2', 'later')];
        if (told.length === 1) self._parent?.send({ type: 'join', members });
      }),
    },
  });
  const input = { queueId: 'mq-1', maxBatch: 2 };
  const actor = createActor(telling, {
    input: { ...input, members: [member('bd-a1', 'first'), member('bd-a2', 'second')] },
  });

  actor.start();
  const { context } = await waitFor(actor, ({ status }) => status === 'done');

  expect(told).toEqual([['first'], ['second', 'later']]);
  expect(context.outcomes.map(({ tickets }) => tickets)).toEqual([
    ['first', 'late'],
    ['second', 'later'],
  ]);
});

test('an undo of work that is merged, or waits for that, is no part of the merge: it comes after it', async () => {
  const [waiting, atWork] = ['bd-a1', 'bd-a2'].map((id) => memberOf(id, 1));
  const undos = ['bd-a1', 'bd-a2'].map((id) =>
    memberOf(id, 1, { undo: true, tickets: [`undo ${id}`] }),
  );
  const told: (readonly string[])[] = [];
  const { machine } = queueOf([], 1, []);
  const telling = machine.provide({
    actors: {
      tell: fromPromise(async ({ input: { batch } }) => {
        told.push(batch.flatMap(({ tickets }) => tickets));
      }),
    },
  });
  const members = [atWork, waiting] as QueueMember[];
  const actor = createActor(telling, { input: { queueId: 'mq-1', maxBatch: 5, members } });

  actor.start();
  actor.send({ type: 'join', members: undos });
  const { context } = await waitFor(actor, ({ status }) => status === 'done');

  expect(told).toEqual([
    ['bd-a2#1', 'bd-a1#1'],
    ['undo bd-a1', 'undo bd-a2'],
  ]);
  expect(context.outcomes).toHaveLength(4);
});
