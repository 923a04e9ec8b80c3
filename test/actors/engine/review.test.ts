import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Model, ModelEvent, ModelMessage } from '../../../src/actors/model/port.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { type Setting, startSystem, untilStatus } from '../../support/running.ts';

type Call = readonly [tool: string, args: object];

/** A model that the test plays; it keeps each conversation as it last saw it. */
const playedModel = (play: (attempt: number, turn: number) => Call | 'hang') => {
  const heard = new Map<number, readonly ModelMessage[]>();
  const model: Model = {
    name: 'played',
    disclaimer: null,
    async *ask({ asker: { attempt }, messages }, signal) {
      heard.set(attempt, messages);
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      const next = play(attempt, turn);
      if (next === 'hang') {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return;
      }
      const [tool, args] = next;
      yield {
        ...{ type: 'answered', text: '', truncated: false },
        calls: [{ id: `call_${turn}`, tool, arguments: JSON.stringify(args) }],
        usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
      } satisfies ModelEvent;
    },
  };
  return { model, textOf: (attempt: number) => JSON.stringify(heard.get(attempt) ?? []) };
};

const write = (file: string): Call => ['write', { path: file, content: 'new\n' }];
const finish = (answers?: object, status = 'done'): Call => [
  'finish',
  { status, summary: 'all done', ...(answers === undefined ? {} : { answers }) },
];

const open = async (model: Model, more: Partial<Setting> = {}) => {
  const running = await startSystem({
    ...{ root: makeRepository(), model, options: { maxRetries: 0 } },
    workspace: (root, stateDir) => worktreesOf(root, join(stateDir, 'worktrees')),
    ...more,
  });
  const { task_id } = await running.service.create({ description: 'Write it' });
  return { ...running, id: task_id };
};
type Scene = Awaited<ReturnType<typeof open>>;

const run = async (scene: Scene) => {
  await scene.service.execute({ task: scene.id, role: 'engineer', options: {} });
  return untilStatus(scene, scene.id, 'complete', 'failed');
};
const comment = (path: string, line: number | null, text: string) => ({
  ...{ path, line, endLine: null, text },
});
const occurrences = (text: string, part: string): number => text.split(part).length - 1;

test('work that is sent back goes on with its branch; each comment is given once and answered in the results', {
  tags: ['slow'],
}, async () => {
  const { model, textOf } = playedModel((attempt, turn) => {
    if (turn === 0) return write(attempt === 1 ? 'b.txt' : 'c.txt');
    if (attempt === 1 || turn === 1) return finish();
    return finish([
      { comment: 1, answer: 'renamed it' },
      { comment: 2, answer: 'it has to stay' },
    ]);
  });
  const scene = await open(model);
  await run(scene);

  const asked = await scene.service.review(scene.id, {
    ...{ verdict: 'request_changes', attempt: null },
    comments: [comment('b.txt', 1, 'Rename this word'), comment('b.txt', null, 'Drop the file')],
  });
  const view = await untilStatus(scene, scene.id, 'complete');

  expect(asked.review).toMatchObject({ verdict: 'request_changes' });
  expect(view).toMatchObject({ attempt: 2, status: 'complete' });
  expect(view.review).toEqual({
    verdict: 'request_changes',
    comments: [
      {
        ...{ id: 1, attempt: 1, path: 'b.txt', line: 1, text: 'Rename this word', open: false },
        ...{ answer: 'renamed it', answered_by: 2 },
      },
      {
        ...{ id: 2, attempt: 1, path: 'b.txt', text: 'Drop the file', open: false },
        ...{ answer: 'it has to stay', answered_by: 2 },
      },
    ],
  });
  const said = textOf(2);
  expect(occurrences(said, 'Rename this word')).toBe(1);
  expect(occurrences(said, 'Drop the file')).toBe(1);
  expect(said).toContain('comments without an answer (1, 2)');
  expect(textOf(1)).not.toContain('review');
  expect(gitIn(scene.root, 'branch', '--list', '--format=%(refname:short)', 'agent/*')).toBe(
    `agent/${scene.id}/1`,
  );
  expect(gitIn(scene.root, 'ls-tree', '--name-only', `agent/${scene.id}/1`)).toBe(
    'a.txt\nb.txt\nc.txt',
  );
  const results = readFileSync(
    join(scene.root, '.beads', 'tasks', `task-${scene.id}`, '30-results.md'),
    'utf8',
  );
  expect(results).toContain('1. b.txt:1\n\n> Rename this word\n\nrenamed it');
  expect(results).toContain('2. b.txt\n\n> Drop the file\n\nit has to stay');
});

test('comments wait until changes are requested, then all of them are given', {
  tags: ['slow'],
}, async () => {
  const { model, textOf } = playedModel((attempt, turn) => {
    if (turn === 0) return write(`${attempt}.txt`);
    return finish([1, 2].map((id) => ({ comment: id, answer: 'done' })));
  });
  const scene = await open(model);
  await run(scene);
  const review = (verdict: 'comment' | 'request_changes', text: string, path = '1.txt') =>
    scene.service.review(scene.id, {
      ...{ verdict, attempt: null, comments: [comment(path, path === '.' ? null : 1, text)] },
    });

  const first = await review('comment', 'The first remark', '.');
  expect(first).toMatchObject({ status: 'complete', attempt: 1, review: { verdict: 'comment' } });
  await review('request_changes', 'The second remark');
  const view = await untilStatus(scene, scene.id, 'complete');

  expect(view.attempt).toBe(2);
  expect(occurrences(textOf(2), 'The first remark')).toBe(1);
  expect(occurrences(textOf(2), 'The second remark')).toBe(1);
  expect(textOf(2)).toContain('1. all changes');
  expect(view.review?.comments.map(({ open }) => open)).toEqual([false, false]);
});

test('an attempt that fails leaves its comments to the next one, on the same branch', {
  tags: ['slow'],
}, async () => {
  const { model, textOf } = playedModel((attempt, turn) => {
    if (turn === 0) return write(`${attempt}.txt`);
    if (attempt === 2) return finish([], 'failed');
    return finish([{ comment: 1, answer: 'done' }]);
  });
  const scene = await open(model);
  await run(scene);
  await scene.service.review(scene.id, {
    ...{ verdict: 'request_changes', attempt: null },
    comments: [comment('1.txt', 1, 'Say it better')],
  });
  const failed = await untilStatus(scene, scene.id, 'failed');

  await scene.service.retry(scene.id, null, null, null);
  const view = await untilStatus(scene, scene.id, 'complete');

  expect(failed.review?.comments).toMatchObject([{ open: true }]);
  expect(occurrences(textOf(3), 'Say it better')).toBe(1);
  expect(view.review?.comments).toMatchObject([{ open: false, answered_by: 3 }]);
  expect(gitIn(scene.root, 'ls-tree', '--name-only', `agent/${scene.id}/1`)).toBe(
    '1.txt\n2.txt\n3.txt\na.txt',
  );
});

test('a restart in the middle gives the comments once', { tags: ['slow'] }, async () => {
  let hangs = true;
  const { model, textOf } = playedModel((attempt, turn) => {
    if (turn === 0) return write(`${attempt}.txt`);
    if (attempt === 2 && turn === 1 && hangs) return 'hang';
    return finish([{ comment: 1, answer: 'done' }]);
  });
  const scene = await open(model);
  await run(scene);
  await scene.service.review(scene.id, {
    ...{ verdict: 'request_changes', attempt: null },
    comments: [comment('1.txt', 1, 'Say it better')],
  });
  await expect.poll(() => textOf(2)).toContain('created 2.txt');
  await scene.stop();
  hangs = false;

  const { root, stateDir } = scene;
  const again = await startSystem({
    ...{ root, stateDir, model, options: { maxRetries: 0 } },
    workspace: () => worktreesOf(root, join(stateDir, 'worktrees')),
  });
  const view = await untilStatus(again, scene.id, 'complete');

  expect(view.attempt).toBe(2);
  expect(occurrences(textOf(2), 'Say it better')).toBe(1);
  expect(view.review?.comments).toMatchObject([{ answer: 'done', answered_by: 2 }]);
});

test('approved work leaves nothing for a later attempt; closed and reopened work waits for a run', {
  tags: ['slow'],
}, async () => {
  const { model, textOf } = playedModel((attempt, turn) =>
    turn === 0 ? write(`${attempt}.txt`) : finish(),
  );
  const scene = await open(model);
  await run(scene);
  const about = { attempt: null, comments: [comment('1.txt', 1, 'A small thing')] };
  await scene.service.review(scene.id, { ...about, verdict: 'comment' });

  const approved = await scene.service.review(scene.id, {
    ...{ verdict: 'approve', attempt: null, comments: [] },
  });
  const reopened = await scene.service.reopen(scene.id, null);
  const view = await run(scene);

  expect(approved).toMatchObject({ status: 'complete', review: { comments: [{ open: false }] } });
  expect(reopened).toMatchObject({ status: 'queued', phase: 'waiting_for_run' });
  expect(view).toMatchObject({ attempt: 2, status: 'complete' });
  expect(textOf(2)).not.toContain('A small thing');
});

test('a place that neither the changes nor the project have is refused, with the lines that are there', {
  tags: ['slow'],
}, async () => {
  const { model } = playedModel((_, turn) => (turn === 0 ? write('b.txt') : finish()));
  const scene = await open(model);
  await run(scene);
  const review = (path: string, line: number | null) =>
    scene.service.review(scene.id, {
      ...{ verdict: 'comment', attempt: null, comments: [comment(path, line, 'x')] },
    });
  const refused = (path: string, problem = expect.any(String)) => ({
    code: 'invalid_params',
    facts: { fields: [{ path, problem }] },
  });

  await expect(review('nofile.js', 1)).rejects.toMatchObject(refused('comments.0.path'));
  await expect(review('b.txt', 99)).rejects.toMatchObject(
    refused(
      'comments.0.line',
      'b.txt: the changes of attempt 1 do not have line 99; they have its line 1',
    ),
  );
  await expect(review('a.txt', 1)).rejects.toMatchObject(
    refused(
      'comments.0.line',
      'a.txt: the changes of attempt 1 do not have line 1; they do not touch that file; leave out the line',
    ),
  );
  expect((await review('b.txt', 1)).review?.comments).toHaveLength(1);
  expect((await review('a.txt', null)).review?.comments).toHaveLength(2);
});

test('an agent that does not answer is reminded twice, then its work counts', {
  tags: ['slow'],
}, async () => {
  const { model, textOf } = playedModel((attempt, turn) =>
    turn === 0 ? write(`${attempt}.txt`) : finish(),
  );
  const scene = await open(model);
  await run(scene);
  await scene.service.review(scene.id, {
    ...{ verdict: 'request_changes', attempt: null },
    comments: [comment('1.txt', 1, 'Say it better')],
  });

  const view = await untilStatus(scene, scene.id, 'complete', 'failed');

  expect(view.status).toBe('complete');
  expect(occurrences(textOf(2), 'comments without an answer')).toBe(2);
  expect(view.review?.comments).toMatchObject([{ open: false, answered_by: 2 }]);
  expect(view.review?.comments[0]).not.toHaveProperty('answer');
});

test('a task without an attempt, at work, or without that attempt takes no review', async () => {
  const { model } = playedModel((attempt) => (attempt === 1 ? finish() : 'hang'));
  const scene = await open(model);
  const review = (attempt: number | null) =>
    scene.service.review(scene.id, {
      ...{ verdict: 'comment', attempt, comments: [comment('a.txt', 1, 'x')] },
    });
  const refused = { code: 'event_not_allowed', facts: { event: 'review' } };

  await expect(review(null)).rejects.toMatchObject(refused);
  await run(scene);
  await expect(review(2)).rejects.toMatchObject(refused);
  await review(1);
  await scene.service.reopen(scene.id, null);
  await scene.service.execute({ task: scene.id, role: 'engineer', options: {} });
  await untilStatus(scene, scene.id, 'started');
  await expect(review(null)).rejects.toMatchObject(refused);
  await scene.service.cancel(scene.id, null);
});
