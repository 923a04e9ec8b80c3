import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { renderTask } from '../../../src/cli/output/render/render-task.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landingDefaults, type Running, startSystem, untilStatus } from '../../support/running.ts';

const writing = (title: string, path: string, content: string) => ({
  title,
  turns: [
    { calls: [{ tool: 'write', arguments: { path, content } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ],
});
const scripts = [
  writing('One', 'one', 'one\n'),
  writing('Two', 'two', 'two\n'),
  writing('Text', 'text', 'agent\n'),
  writing('Needed', 'needed', 'x\n'),
];

const start = (
  verify: readonly string[] = [],
  style: 'squash' | 'ff' = 'squash',
): Promise<Running> => {
  const root = makeRepository();
  commitIn(root, 'text', 'text\n');
  return startSystem({
    root,
    workspace: (project, stateDir) => worktreesOf(project, join(stateDir, 'worktrees')),
    model: createScriptedModel(parseScript({ scripts })),
    options: {
      landing: { ...landingDefaults, style, verify },
    },
  });
};
const land = async (running: Running, title: string, ...dependencies: string[]) => {
  const { task_id: id } = await running.service.create({ description: title, dependencies });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete');
  expect(await running.service.merge({ taskId: id })).toMatchObject({ status: 'merged' });
  return id;
};
const undo = (running: Running, taskId: string, withDependents = false) =>
  running.service.undo({ taskId, withDependents });
const isThere = ({ root }: Running, path: string): boolean => existsSync(join(root, path));

for (const style of ['squash', 'ff'] as const)
  test(`what landed by ${style} is taken back in one commit, later work stays, and the task is open again`, async () => {
    const running = await start(['true'], style);
    const one = await land(running, 'One');
    commitIn(running.root, 'by-hand', 'a person\n');

    const results = () =>
      readFileSync(join(running.root, '.beads', 'tasks', `task-${one}`, '30-results.md'), 'utf8');
    expect(results()).toMatch(
      /^- Merged into main \([0-9a-f]{12}\), tested with true, [\d.]+ s; \d{4}-\S+Z$/m,
    );

    const undone = await undo(running, one);

    expect(results()).toMatch(/^- Undone in main \([0-9a-f]{12}\), tested with true, /m);
    expect(results()).not.toMatch(/Take them|Merged into/);
    const tip = gitIn(running.root, 'rev-parse', 'main');
    expect(undone).toEqual({
      landed: [
        { task_id: one, attempt: 1, status: 'merged', commit: tip, into: 'main', tested: ['true'] },
      ],
      refused: [],
    });
    expect([isThere(running, 'one'), isThere(running, 'by-hand')]).toEqual([false, true]);
    expect(gitIn(running.root, 'status', '--porcelain')).not.toMatch(/one|by-hand/);
    expect(gitIn(running.root, 'log', '-1', '--format=%B')).toMatch(
      new RegExp(`^Undo "One"\n\nThis reverts commit \\w{40}\\.\n\nTask: ${one}\nAttempt: 1\n`),
    );
    const view = await running.service.status(one);
    expect(view).toMatchObject({ status: 'queued', work: { discarded_at: expect.any(String) } });
    expect(view.work).not.toHaveProperty('merged_at');
    await expect(undo(running, one)).rejects.toMatchObject({ code: 'event_not_allowed' });
  });

test('after an undo show, merge and retry say one thing: run the task again', async () => {
  const running = await start();
  const { service } = running;
  const one = await land(running, 'One');
  await undo(running, one);

  const said = `task ${one} is open again since its work was undone (attempt 1): merge is not allowed now; allowed: diff, run`;
  await expect(service.merge({ taskId: one })).rejects.toThrow(said);
  await expect(service.merge({ taskId: one, force: true })).rejects.toThrow(said);
  const { refused } = await service.mergeMany({ taskIds: [one], all: false });
  expect(refused.map(({ message }) => message)).toEqual([said]);
  await expect(service.retry(one, null, null, null)).rejects.toThrow(/is queued: .* allowed: run,/);
  const shown = terminalText(renderTask(await service.status(one)), false);
  expect(shown).toMatch(/^ {2}changes +1 file \+1 -0 on agent\/\S+, undone \d{4}-/m);
  expect(shown).toMatch(new RegExp(`^ {2}agent engineer ${one} +run$`, 'm'));
});

test('a task whose work was undone does it anew', async () => {
  const running = await start();
  const one = await land(running, 'One');
  await undo(running, one);

  await running.service.execute({ task: one, role: 'engineer', options: {} });
  await untilStatus(running, one, 'complete');
  const merged = await running.service.merge({ taskId: one });

  expect(merged).toMatchObject({ status: 'merged', attempt: 2 });
  expect(readFileSync(join(running.root, 'one'), 'utf8')).toBe('one\n');
});

test('landed work that depends on it is named, and undone before it when asked', async () => {
  const running = await start();
  const one = await land(running, 'One');
  const two = await land(running, 'Two', one);

  await expect(undo(running, one)).rejects.toThrow(
    `landed, and so did ${two}, which depends on it`,
  );
  const { landed } = await undo(running, one, true);

  expect(landed.map(({ task_id }) => task_id)).toEqual([two, one]);
  expect([isThere(running, 'one'), isThere(running, 'two')]).toEqual([false, false]);
});

test('later changes of the same lines are not lost: it is refused', async () => {
  const running = await start();
  const id = await land(running, 'Text');
  commitIn(running.root, 'text', 'a person\n');

  const { refused } = await undo(running, id);

  expect(refused).toMatchObject([
    {
      code: 'merge_conflict',
      paths: ['text'],
      message: 'later changes of main are in the same lines',
    },
  ]);
  expect(await running.service.status(id)).toMatchObject({
    status: 'complete',
    work: { merge: { state: 'landed' } },
  });
});

test('a branch that fails without it keeps it', async () => {
  const running = await start(['[ ! -e text ] || [ -e needed ] || exit 1']);
  const { task_id: id } = await running.service.create({ description: 'Needed' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete');
  await running.service.merge({ taskId: id });
  const before = gitIn(running.root, 'rev-parse', 'main');

  const { refused } = await undo(running, id);

  expect(refused).toMatchObject([{ code: 'verify_failed', task_id: id }]);
  expect(gitIn(running.root, 'rev-parse', 'main')).toBe(before);
});

test('a task without landed work has nothing to undo', async () => {
  const running = await start();
  const { task_id: id } = await running.service.create({ description: 'One' });

  await expect(undo(running, id)).rejects.toThrow('without work that landed');
});
