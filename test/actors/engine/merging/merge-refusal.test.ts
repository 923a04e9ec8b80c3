import { expect, test } from 'vitest';
import {
  endOfAttempt,
  refusesMerge,
} from '../../../../src/actors/engine/merging/request-merges.ts';
import { describeRefusal } from '../../../../src/machines/errors.ts';
import type { TaskId } from '../../../../src/machines/task.ts';

const wish = {
  taskId: 'bd-a1' as TaskId,
  attempt: 2,
  isLive: false,
  status: 'failed',
  isUndone: false,
  end: 'complete',
  force: false,
  isDiscarded: false,
  isAtForge: false,
};

test('the work of a complete attempt is merged', () => {
  expect(refusesMerge(wish)).toBeNull();
});

test('discarded work is not merged, also with --force', () => {
  expect(refusesMerge({ ...wish, isDiscarded: true, force: true })?.facts).toMatchObject({
    ...{ state: 'discarded (attempt 2)', allowed: ['diff', 'retry'] },
  });
});

test('work in an open pull request is merged here only with --force', () => {
  const atForge = { ...wish, status: 'complete', isAtForge: true };

  expect(refusesMerge(atForge)?.facts).toMatchObject({
    state: 'in an open pull request (attempt 2)',
    allowed: ['pr', 'discard', 'merge --force'],
  });
  expect(refusesMerge({ ...atForge, force: true })).toBeNull();
});

test.each(['failed', 'cancelled', 'closed by hand', null])(
  'the work of an attempt that is %s is merged only with --force',
  (end) => {
    const refused = refusesMerge({ ...wish, end });

    expect(refused?.code).toBe('event_not_allowed');
    expect(refused === null ? '' : describeRefusal(refused)).toBe(
      `task bd-a1 is ${end ?? 'not complete'} (attempt 2): merge is not allowed now; allowed: diff, retry, merge --force`,
    );
    expect(refusesMerge({ ...wish, end, force: true })).toBeNull();
  },
);

test('a failed task that was closed by hand since can be reopened, not retried', () => {
  const refused = refusesMerge({ ...wish, status: 'complete', end: 'failed' });

  expect(refused === null ? '' : describeRefusal(refused)).toMatch(
    /allowed: diff, reopen, merge --force$/,
  );
});

test('the work of a running attempt is not merged even with --force', () => {
  expect(refusesMerge({ ...wish, isLive: true, force: true })?.code).toBe('event_not_allowed');
});

test('the end of an attempt is read from its own frames only', () => {
  const frame = (type: string, data: object = {}) => ({ type, attempt: 2, data });

  expect(
    ['completed', 'failed', 'cancelled', 'log'].map((type) => endOfAttempt(frame(type), 2)),
  ).toEqual(['complete', 'failed', 'cancelled', null]);
  expect(endOfAttempt(frame('completed', { by_hand: true }), 2)).toBe('closed by hand');
  expect(endOfAttempt(frame('completed'), 1)).toBeNull();
});
