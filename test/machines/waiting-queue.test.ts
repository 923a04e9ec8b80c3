import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  emptyQueue,
  firstWaiting,
  isWaiting,
  requestsIn,
  type SlotRequest,
  waitingOf,
  waitingRoles,
  withoutTask,
  withRequest,
} from '../../src/machines/supervisor/waiting-queue.ts';
import type { Role, TaskId } from '../../src/machines/task.ts';

const requestOf = (number: number, role: Role, priority: number, submittedAt: number) => ({
  ...{ taskId: `bd-${number}` as TaskId, role, priority, submittedAt },
  ...{ admitted: false, backend: null, triesNow: false },
});

/** The same queue as a plain list. */
const withPlain = (queue: readonly SlotRequest[], request: SlotRequest): readonly SlotRequest[] => {
  const before = (other: SlotRequest): boolean =>
    request.priority < other.priority ||
    (request.priority === other.priority && request.submittedAt < other.submittedAt);
  const earlier = queue.find(({ taskId }) => taskId === request.taskId);
  if (earlier?.priority === request.priority && earlier.submittedAt === request.submittedAt)
    return queue;
  const others = queue.filter((other) => other !== earlier);
  const at = others.findIndex(before);
  return others.toSpliced(at < 0 ? others.length : at, 0, request);
};

test('a queue of many requests keeps the order of a plain list', () => {
  const request = fc
    .tuple(
      fc.integer({ min: 0, max: 3_000 }),
      fc.constantFrom<Role>('engineer', 'tester', 'architect'),
      fc.integer({ min: 0, max: 2 }),
      fc.integer({ min: 0, max: 3 }),
    )
    .map((given) => requestOf(...given));
  const events = fc.array(fc.record({ request, leaves: fc.boolean() }), { maxLength: 30 });
  fc.assert(
    fc.property(
      fc.array(request, { minLength: 1_200, maxLength: 1_400 }),
      events,
      (first, more) => {
        let [queue, plain] = [emptyQueue, [] as readonly SlotRequest[]];
        for (const each of first)
          [queue, plain] = [withRequest(queue, each), withPlain(plain, each)];
        for (const { request, leaves } of more) {
          const [before, all] = [queue, requestsIn(queue)];
          queue = leaves ? withoutTask(queue, request.taskId) : withRequest(queue, request);
          plain = leaves
            ? plain.filter(({ taskId }) => taskId !== request.taskId)
            : withPlain(plain, request);
          expect(requestsIn(before)).toEqual(all);
          expect(isWaiting(queue, request.taskId)).toBe(!leaves);
        }
        expect(requestsIn(queue)).toEqual(plain);
        expect(queue.length).toBe(plain.length);
        const isTester = (role: Role): boolean => role === 'tester';
        expect(firstWaiting(queue, isTester)).toEqual(plain.find(({ role }) => isTester(role)));
        expect(waitingOf(queue, isTester)).toBe(plain.filter(({ role }) => isTester(role)).length);
        expect(new Set(waitingRoles(queue))).toEqual(new Set(plain.map(({ role }) => role)));
        for (const { taskId } of plain) queue = withoutTask(queue, taskId);
        expect(queue).toMatchObject({ length: 0, byTask: { parts: [] } });
      },
    ),
    { numRuns: 3 },
  );
});
