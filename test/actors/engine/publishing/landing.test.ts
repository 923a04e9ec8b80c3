import { describe, expect, test } from 'vitest';
import {
  createMerge,
  createUpdateToBase,
} from '../../../../src/actors/engine/publishing/landing.ts';
import type { Forge, PullRequestStatus } from '../../../../src/actors/forge/port.ts';
import type { TaskView } from '../../../../src/actors/journal/task-view.ts';
import { ServiceError } from '../../../../src/machines/errors.ts';
import type { PullRequestContext } from '../../../../src/machines/pull-request/pull-request-context.ts';
import type { TaskId } from '../../../../src/machines/task.ts';

const task_id = 'bd-a1' as TaskId;
const never = new AbortController().signal;
const published = { number: 1, headSha: 'aaa', attempt: 2 };
const context = { taskId: task_id, published, seen: null } as unknown as PullRequestContext;
const sentBack: Partial<TaskView> = { review: { verdict: 'request_changes', comments: [] } };

type Update = Parameters<typeof createMerge>[0]['update'];

/** The server was killed after it updated the work, and before the journal had what came of that. */
const open = (
  task: Partial<TaskView>,
  update: () => ReturnType<Update>,
  tip: string | null = 'fff',
) => {
  const merged: string[] = [];
  const found = { state: 'open', headSha: 'aaa', base: 'main' } as PullRequestStatus;
  const forge = {
    status: async () => found,
    merge: async (_: number, { sha }: { sha: string }) => void merged.push(sha),
  } as unknown as Forge;
  const ports = {
    place: async () => ({ forge, url: 'https://forge.example', token: null, repository: 'a/b' }),
    workspace: { fetch: async () => tip, takeIn: async () => null },
    status: async () => ({ task_id, attempt: 2, status: 'complete', ...task }) as TaskView,
    update,
    method: () => 'merge' as const,
  };
  return { merged, update: createUpdateToBase(ports), merge: createMerge(ports) };
};

const refuse = async (): ReturnType<Update> => {
  const facts = { task_id, event: 'update', state: 'started', allowed: ['cancel'] };
  throw new ServiceError('event_not_allowed', facts);
};
const current = (commit: string) => async (): ReturnType<Update> => ({
  ...{ task_id, attempt: 2, status: 'current', commit },
});

describe('after an answer that was lost', () => {
  test.each([
    ['is at work', { status: 'started', attempt: 3 }],
    ['is over', { status: 'complete', attempt: 3 }],
    ['failed', { status: 'failed', attempt: 3 }],
  ] as const)('work that was sent back counts as a round when its attempt %s', async (_, task) => {
    const { merged, update, merge } = open({ ...task, ...sentBack }, refuse);

    expect(await update(context, never)).toBe('sent_back');
    expect(await merge(context, never)).toBe('sent_back');
    expect(merged).toEqual([]);
  });

  test('nothing is merged whose task a person opened again', async () => {
    const { merged, merge } = open({ status: 'queued' }, refuse);

    expect(await merge(context, never)).toBe('moved');
    expect(merged).toEqual([]);
  });

  test('work that is newer than what was pushed is pushed', async () => {
    const { update, merge, merged } = open({}, current('bbb'));

    expect(await update(context, never)).toBe('updated');
    expect(await merge(context, never)).toBe('updated');
    expect(merged).toEqual([]);
  });
});

test('a task that was merged here meanwhile is no reason to merge at the forge', async () => {
  const { merged, merge } = open({}, refuse);

  await expect(merge(context, never)).rejects.toThrow();
  expect(merged).toEqual([]);
});

test('work that has its base is merged', async () => {
  const { merged, merge } = open({}, current('aaa'));

  expect(await merge(context, never)).toBe('merged');
  expect(merged).toEqual(['aaa']);
});

test('nothing is merged whose base was deleted meanwhile', async () => {
  const { merged, merge } = open({}, current('aaa'), null);

  await expect(merge(context, never)).rejects.toMatchObject({
    problem: { needs: 'person', message: 'its base main was deleted: give it another one' },
  });
  expect(merged).toEqual([]);
});
