import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NewTask, Tracker } from '../../src/actors/tracker/port.ts';
import { ServiceError } from '../../src/machines/errors.ts';
import type { TaskId } from '../../src/machines/task.ts';

export const aTask = (over: Partial<NewTask> = {}): NewTask => ({
  title: 'A task',
  description: 'What it is about.',
  priority: 2,
  labels: [],
  dependencies: [],
  ...over,
});

export const nobody = 'bd-none' as TaskId;

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'accepted',
    (error: unknown) => (error instanceof ServiceError ? error.code : error),
  );

const unfit: readonly (readonly [what: string, over: Partial<NewTask>])[] = [
  ['an empty title', { title: ' ' }],
  ['a title of 501 bytes', { title: 'x'.repeat(501) }],
  ['a title of two lines', { title: 'a\nb' }],
  ['a NUL', { description: 'a\0b' }],
  ['a description of more than 64 KiB', { description: 'x'.repeat(65_537) }],
  ['priority 5', { priority: 5 }],
  ['a label with a space', { labels: ['a b'] }],
];

const oddTitles = [
  '-rf',
  '--help',
  '$(id)',
  '`id`',
  '@/etc/passwd',
  '-',
  '\u001b[31mred',
  '{"json":1}',
  "'; drop",
  '🙂',
];

/**
 * What every tracker does; `many` is how many at once are many for it. `brief`: a few of the odd
 * texts are enough.
 */
export const describeTracker = (
  name: string,
  open: () => Promise<{ tracker: Tracker; close: () => Promise<void> }>,
  {
    many = 200,
    brief = false,
    tags = [],
  }: { readonly many?: number; readonly brief?: boolean; readonly tags?: string[] } = {},
) =>
  describe(`${name} tracker`, { tags }, () => {
    let opened: Awaited<ReturnType<typeof open>>;
    let tracker: Tracker;
    beforeEach(async () => {
      opened = await open();
      tracker = opened.tracker;
    });
    afterEach(() => opened.close());

    const find = async (id: TaskId) => {
      const found = await tracker.find(id);
      if (found === null) throw new Error(`${id} is missing`);
      return found;
    };

    test('a created task is found with what was given', async () => {
      const given = aTask({
        title: 'Zwölf "Boxkämpfer"',
        description: 'two\nlines',
        priority: 0,
        labels: ['role:tester', 'x'],
      });

      const created = await tracker.create(given);

      expect(created).toMatchObject({
        ...given,
        status: 'open',
        assignee: null,
        unmet: [],
        closedAt: null,
      });
      expect(await tracker.find(created.id)).toEqual(created);
    });

    test('a task keeps where it came from', async () => {
      const externalRef = 'https://forge.example/acme/shop/issues/12';
      const { id } = await tracker.create(aTask({ externalRef }));

      await tracker.edit(id, { title: 'other' });

      expect((await tracker.list()).map((each) => each.externalRef)).toEqual([externalRef]);
      expect(await find(id)).toMatchObject({ title: 'other', externalRef });
    });

    test('a request that comes twice creates one task, and both get it', async () => {
      const twice = ['one', 'two'].map((title) => tracker.create(aTask({ title }), 'r1'));
      const [first, second] = await Promise.all(twice);
      const third = await tracker.create(aTask({ title: 'three' }), 'r1');
      const other = await tracker.create(aTask({ title: 'other' }), 'r2');

      expect([second?.id, third.id]).toEqual([first?.id, first?.id]);
      expect((await tracker.list()).map(({ id }) => id)).toEqual([first?.id, other.id]);
    });

    test('several tasks are found at once, with what they wait for', async () => {
      const first = await tracker.create(aTask({ title: 'first' }));
      const second = await tracker.create(aTask({ title: 'second', dependencies: [first.id] }));
      const both = [first.id, second.id];
      const third = await tracker.create(aTask({ title: 'third', dependencies: both }));

      const found = await tracker.findMany([third.id, 'bd-none' as TaskId, ...both]);

      const unmet = new Map(found.map((task) => [task.id, task.unmet.toSorted()]));
      expect(unmet).toEqual(
        new Map([
          [first.id, []],
          [second.id, [first.id]],
          [third.id, both.toSorted()],
        ]),
      );
    });

    test('a task that does not exist is null, also by the beginning of its id', async () => {
      const { id } = await tracker.create(aTask());

      expect(await tracker.find(nobody)).toBeNull();
      expect(await tracker.find(id.slice(0, -1) as TaskId)).toBeNull();
    });

    test('the given fields of a task are edited, and its other fields stay', async () => {
      const { id } = await tracker.create(aTask({ title: 'old', labels: ['a', 'b'] }));

      const answer = await tracker.edit(id, { title: 'new', priority: 0, labels: ['b', 'c'] });
      const described = await tracker.edit(id, { description: 'two\nlines' });

      expect([answer, described]).toEqual([{ refusal: null }, { refusal: null }]);
      const { title, priority, description, labels, status } = await find(id);
      expect({ title, priority, description, status }).toEqual({
        title: 'new',
        priority: 0,
        description: 'two\nlines',
        status: 'open',
      });
      expect([...labels].sort()).toEqual(['b', 'c']);
      const { refusal } = await tracker.edit('bd-none' as TaskId, { title: 'x' });
      expect(refusal?.code).toBe('task_not_found');
    });

    test('a task is removed unless another one depends on it', async () => {
      const [one, two] = [await tracker.create(aTask()), await tracker.create(aTask())];
      await tracker.addDependency(two.id, one.id);

      const needed = await tracker.remove(one.id);
      const removed = await tracker.remove(two.id);
      const free = await tracker.remove(one.id);

      expect(needed.refusal).toMatchObject({
        code: 'event_not_allowed',
        facts: { state: `needed by ${two.id}` },
      });
      expect([removed, free]).toEqual([{ refusal: null }, { refusal: null }]);
      expect(await tracker.find(two.id)).toBeNull();
      expect(await tracker.list()).toEqual([]);
      expect((await tracker.remove(one.id)).refusal?.code).toBe('task_not_found');
    });

    test('tasks are listed in the order of their creation', async () => {
      const ids: TaskId[] = [];
      for (const title of ['one', 'two', 'three'])
        ids.push((await tracker.create(aTask({ title }))).id);

      expect((await tracker.list()).map(({ id }) => id)).toEqual(ids);
    });

    test('pages begin with the oldest or the newest task, and the tasks are counted', async () => {
      const ids: TaskId[] = [];
      for (const title of ['one', 'two', 'three', 'four'])
        ids.push((await tracker.create(aTask({ title }))).id);
      const [first, , third, fourth] = ids;
      await tracker.addDependency(third as TaskId, first as TaskId);
      const page = async (request: object, after?: TaskId) => {
        const place = after === undefined ? {} : { after: await find(after) };
        const tasks = await tracker.page({ limit: 2, ...request, ...place });
        return tasks.map(({ id }) => id);
      };

      expect(await page({})).toEqual([ids[0], ids[1]]);
      expect(await page({ order: 'newest' })).toEqual([ids[3], ids[2]]);
      expect(await page({ order: 'newest' }, third)).toEqual([ids[1], ids[0]]);
      expect(await page({ order: 'newest', status: 'queued' }, fourth)).toEqual([ids[2], ids[1]]);
      expect(await page({ order: 'newest', status: 'queued', unblocked: true })).toEqual([
        ids[3],
        ids[1],
      ]);
      for (const order of ['oldest', 'newest'] as const)
        expect(
          await tracker.pageAtWork({ order, status: 'queued', limit: 2 }, async () => []),
        ).toEqual([]);
      expect(await tracker.count({})).toBe(4);
      expect(await tracker.count({ status: 'queued' })).toBe(4);
      expect(await tracker.count({ status: 'queued', unblocked: true })).toBe(3);
      expect(await tracker.count({ status: 'complete' })).toBe(0);
    });

    test('the first id depends on the second', async () => {
      const [prerequisite, dependent] = [
        await tracker.create(aTask()),
        await tracker.create(aTask()),
      ];

      const verdict = await tracker.addDependency(dependent.id, prerequisite.id);

      expect(verdict).toEqual({ refusal: null });
      expect(await find(dependent.id)).toMatchObject({
        dependencies: [prerequisite.id],
        unmet: [prerequisite.id],
      });
      expect(await find(prerequisite.id)).toMatchObject({ dependencies: [] });
    });

    test('the dependents of a task are those that depend on it, open or closed', async () => {
      const first = await tracker.create(aTask());
      const second = await tracker.create(aTask({ dependencies: [first.id] }));
      const third = await tracker.create(aTask({ dependencies: [second.id] }));
      await tracker.close(first.id, 'Completed by agent-server');

      const ids = async (id: TaskId) => (await tracker.dependents(id)).map((task) => task.id);

      expect([await ids(first.id), await ids(second.id), await ids(third.id)]).toEqual([
        [second.id],
        [third.id],
        [],
      ]);
    });

    test('a dependency that is closed is met, and unmet again when it is reopened', async () => {
      const first = await tracker.create(aTask());
      const second = await tracker.create(aTask({ dependencies: [first.id] }));

      await tracker.close(first.id, 'Completed by agent-server');
      const met = await find(second.id);
      await tracker.reopen(first.id);

      expect(met.unmet).toEqual([]);
      expect((await find(second.id)).unmet).toEqual([first.id]);
    });

    test('a dependency on a closed task is met as soon as it is added', async () => {
      const [closed, later] = [await tracker.create(aTask()), await tracker.create(aTask())];
      await tracker.close(closed.id, 'Completed by agent-server');

      await tracker.addDependency(later.id, closed.id);

      expect(await find(later.id)).toMatchObject({
        dependencies: [closed.id],
        unmet: [],
        ready: true,
      });
    });

    test('adding a dependency again and removing what is not there succeed', async () => {
      const [one, other] = [await tracker.create(aTask()), await tracker.create(aTask())];
      await tracker.addDependency(one.id, other.id);

      expect(await tracker.addDependency(one.id, other.id)).toEqual({ refusal: null });
      expect((await find(one.id)).dependencies).toEqual([other.id]);
      expect(await tracker.removeDependency(one.id, other.id)).toEqual({ refusal: null });
      expect(await tracker.removeDependency(one.id, other.id)).toEqual({ refusal: null });
      expect((await find(one.id)).dependencies).toEqual([]);
    });

    test('a cycle is refused by name and nothing is added', async () => {
      const one = await tracker.create(aTask());
      const two = await tracker.create(aTask({ dependencies: [one.id] }));
      const three = await tracker.create(aTask({ dependencies: [two.id] }));

      const { refusal } = await tracker.addDependency(one.id, three.id);

      expect(refusal).toEqual({
        code: 'dependency_cycle',
        facts: { cycle: [one.id, three.id, two.id, one.id] },
      });
      expect((await tracker.addDependency(one.id, one.id)).refusal?.code).toBe('dependency_cycle');
      expect((await find(one.id)).dependencies).toEqual([]);
    });

    test('a dependency on a task that does not exist is refused, and nothing is created', async () => {
      const { id } = await tracker.create(aTask());

      expect((await tracker.addDependency(id, nobody)).refusal?.code).toBe('task_not_found');
      expect((await tracker.addDependency(nobody, id)).refusal?.code).toBe('task_not_found');
      expect(await codeOf(tracker.create(aTask({ dependencies: [nobody] })))).toBe(
        'task_not_found',
      );
      const others = ['bd-gone1', 'bd-gone2'] as TaskId[];
      await expect(
        tracker.create(aTask({ dependencies: [nobody, id, ...others] })),
      ).rejects.toThrow(`task ${nobody} does not exist, nor ${others.join(', ')}`);
      expect(await tracker.list()).toHaveLength(1);
    });

    test('a claim marks the task started for this service, and can be repeated', async () => {
      const { id } = await tracker.create(aTask());

      expect(await tracker.claim(id)).toEqual({ refusal: null });
      expect(await tracker.claim(id)).toEqual({ refusal: null });

      expect(await find(id)).toMatchObject({ status: 'in_progress', assignee: 'agent-server' });
    });

    test('claiming what we hold succeeds also when a dependency was added since', async () => {
      const [held, later] = [await tracker.create(aTask()), await tracker.create(aTask())];
      await tracker.claim(held.id);
      await tracker.addDependency(held.id, later.id);

      expect(await tracker.claim(held.id)).toEqual({ refusal: null });
    });

    test('a claim is refused for a missing, a closed, and a blocked task', async () => {
      const first = await tracker.create(aTask());
      const second = await tracker.create(aTask({ dependencies: [first.id] }));
      const closed = await tracker.create(aTask());
      await tracker.close(closed.id, 'Completed by agent-server');

      expect((await tracker.claim(nobody)).refusal?.code).toBe('task_not_found');
      expect((await tracker.claim(closed.id)).refusal?.code).toBe('tracker_conflict');
      expect((await tracker.claim(second.id)).refusal).toEqual({
        code: 'dependencies_unmet',
        facts: { task_id: second.id, unmet: [first.id] },
      });
      expect((await find(second.id)).status).toBe('open');
    });

    test('a write that its fence refuses changes nothing', async () => {
      const { id } = await tracker.create(aTask());
      const fence = (): never => {
        throw new ServiceError('stale_attempt', { task_id: id, attempt: 1, live_attempt: 2 });
      };

      expect(await codeOf(tracker.claim(id, fence))).toBe('stale_attempt');
      expect(await codeOf(tracker.close(id, 'late', fence))).toBe('stale_attempt');
      expect(await find(id)).toMatchObject({ status: 'open', assignee: null });
      await tracker.claim(id);
      expect(await codeOf(tracker.release(id, 'agent-failed', fence))).toBe('stale_attempt');
      expect(await codeOf(tracker.reopen(id, fence))).toBe('stale_attempt');
      expect(await find(id)).toMatchObject({
        status: 'in_progress',
        assignee: tracker.actor,
        labels: [],
      });
    });

    test.each(['agent-failed', 'agent-cancelled'] as const)(
      'a released task is open again with the label %s',
      async (label) => {
        const { id } = await tracker.create(aTask({ labels: ['x'] }));
        await tracker.claim(id);

        await tracker.release(id, label);
        await tracker.release(id, label);

        expect(await find(id)).toMatchObject({
          status: 'open',
          assignee: null,
          labels: ['x', label],
        });
      },
    );

    test('a task that another attempt will follow is open again without a label', async () => {
      const { id } = await tracker.create(aTask({ labels: ['x'] }));
      await tracker.claim(id);

      await tracker.release(id, null);

      expect(await find(id)).toMatchObject({ status: 'open', assignee: null, labels: ['x'] });
    });

    test('a task that was never claimed gets the label too, a closed one does not', async () => {
      const [open_, closed] = [await tracker.create(aTask()), await tracker.create(aTask())];
      await tracker.close(closed.id, 'Completed by agent-server');

      await tracker.release(open_.id, 'agent-cancelled');
      await tracker.release(closed.id, 'agent-failed');

      expect((await find(open_.id)).labels).toEqual(['agent-cancelled']);
      expect(await find(closed.id)).toMatchObject({ status: 'closed', labels: [] });
    });

    test('claim, close and reopen remove the labels of an earlier end', async () => {
      const ids = await Promise.all(
        [1, 2, 3].map(async () => (await tracker.create(aTask({ labels: ['x'] }))).id),
      );
      const [claimed, closed, reopened] = ids as [TaskId, TaskId, TaskId];
      for (const id of ids) await tracker.release(id, 'agent-failed');

      await tracker.claim(claimed);
      await tracker.close(closed, 'Completed by agent-server');
      await tracker.reopen(reopened);

      for (const id of ids) expect((await find(id)).labels).toEqual(['x']);
    });

    test('closing a closed task keeps the first time', async () => {
      const { id } = await tracker.create(aTask());
      await tracker.close(id, 'Completed by agent-server');
      const { closedAt, status } = await find(id);

      expect(await tracker.close(id, 'Completed once more, really')).toEqual({ refusal: null });

      expect(status).toBe('closed');
      expect(closedAt).toMatch(/^\d{4}-.*Z$/);
      expect((await find(id)).closedAt).toBe(closedAt);
    });

    test('a task with an open dependency is not closed', async () => {
      const first = await tracker.create(aTask());
      const second = await tracker.create(aTask({ dependencies: [first.id] }));

      expect((await tracker.close(second.id, 'x')).refusal?.code).toBe('dependencies_unmet');
      expect((await tracker.close(nobody, 'x')).refusal?.code).toBe('task_not_found');
      expect((await find(second.id)).status).toBe('open');
    });

    test('a reopened task is open without a holder', async () => {
      const { id } = await tracker.create(aTask());
      await tracker.claim(id);
      await tracker.close(id, 'Completed by agent-server');

      expect(await tracker.reopen(id)).toEqual({ refusal: null });

      expect(await find(id)).toMatchObject({ status: 'open', assignee: null, closedAt: null });
      expect((await tracker.reopen(nobody)).refusal?.code).toBe('task_not_found');
    });

    test('every change moves updated_at forward', async () => {
      const { id, updatedAt } = await tracker.create(aTask());
      await tracker.claim(id);
      const claimed = (await find(id)).updatedAt;
      await tracker.release(id, 'agent-failed');

      expect(claimed > updatedAt).toBe(true);
      expect((await find(id)).updatedAt > claimed).toBe(true);
    });

    test('an invalid field is named', async () => {
      const refused = tracker.create(aTask({ title: 'a\0b', labels: ['x', 'a b'] }));

      const error = await refused.catch((reason: unknown) => reason);
      expect(error).toMatchObject({ facts: { fields: [{ path: 'title' }, { path: 'labels.1' }] } });
    });

    test.each(brief ? unfit.slice(0, 1) : unfit)(
      '%s is refused and nothing is created',
      async (_, over) => {
        expect(await codeOf(tracker.create(aTask(over)))).toBe('invalid_params');
        expect(await tracker.list()).toEqual([]);
      },
    );

    test.each(brief ? oddTitles.slice(0, 3) : oddTitles)(
      'the title %j comes back as it was',
      async (title) => {
        const { id } = await tracker.create(aTask({ title, description: title }));

        expect(await find(id)).toMatchObject({ title, description: title });
      },
    );

    test('many creates at once all arrive, each with an id of its own', async () => {
      const created = await Promise.all(
        Array.from({ length: many }, (_, n) => tracker.create(aTask({ title: `task ${n}` }))),
      );

      expect(new Set(created.map(({ id }) => id)).size).toBe(many);
      expect(new Set((await tracker.list()).map(({ title }) => title)).size).toBe(many);
    });

    test('many concurrent claims by this service all succeed', async () => {
      const { id } = await tracker.create(aTask());

      const verdicts = await Promise.all(Array.from({ length: 10 }, () => tracker.claim(id)));

      expect(verdicts.every(({ refusal }) => refusal === null)).toBe(true);
      expect((await find(id)).status).toBe('in_progress');
    });

    test('a note changes nothing else, and a missing task gets none', async () => {
      const { id } = await tracker.create(aTask({ labels: ['x'] }));
      const before = await find(id);

      await tracker.note(id, '--force\n$(id) "quoted"');
      await tracker.note(nobody, 'to nobody');

      expect({ ...(await find(id)), updatedAt: '' }).toEqual({ ...before, updatedAt: '' });
    });

    test('it reports that it can be used', async () => {
      expect((await tracker.check()).ok).toBe(true);
    });
  });
