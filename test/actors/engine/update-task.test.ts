import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import {
  complete,
  landingDefaults,
  type Running,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

const check = 'if [ -e calls-1 ]; then test -e "$(cat calls-1)"; fi';
const bash = (command: string) => ({ tool: 'bash', arguments: { command } });
const finish = { tool: 'finish', arguments: { status: 'done', summary: 'done' } };
const doing = (title: string, ...commands: readonly string[]) => ({
  title,
  turns: [...commands.map((command) => ({ calls: [bash(command)] })), { calls: [finish] }],
});
/** An agent does the same in each attempt, so its commands look at what is there. */
const scripts = [
  doing('Rename', 'mv total sum'),
  doing('Call', 'if [ -e sum ]; then echo sum > calls-1; else echo total > calls-1; fi'),
  doing('Stubborn', 'echo total > calls-1'),
  doing('Greet', 'echo hello > text'),
  doing('Other', 'echo other > other.txt'),
  doing(
    'Part',
    'if grep -q "<<<" text; then cp text seen; echo both > text; else echo bye > text; fi',
  ),
  {
    title: 'Late',
    turns: [
      { calls: [bash('grep -q "<<<" text || echo bye > text')] },
      { calls: [finish] },
      { calls: [bash('grep -q "<<<" text && echo both > text')] },
      { calls: [finish] },
    ],
  },
  ...['1', '2'].map((n) =>
    doing(
      `Many ${n}`,
      `d=${'d'.repeat(200)}; d=$d/$d/$d/$d/$d; mkdir -p $d; cd $d; for i in $(seq 2200); do echo ${n} > $i; done`,
    ),
  ),
  {
    title: 'Broken',
    turns: [
      { calls: [bash('grep -q "<<<" text || echo bye > text')] },
      { calls: [bash('! grep -q "<<<" text')], otherwise: { calls: [] } },
      { calls: [finish] },
      { calls: [finish] },
      { calls: [finish] },
    ],
  },
  doing('Look', 'git log --format=%s main > looked; git diff --stat main >> looked'),
];

const start = (
  verify: readonly string[],
  landing: Partial<typeof landingDefaults> = {},
  merge: 'none' | 'squash' = 'none',
): Promise<Running> => {
  const root = makeRepository();
  commitIn(root, 'total', 'defined\n');
  commitIn(root, 'text', 'text\n');
  return startSystem({
    root,
    workspace: (project, stateDir) => worktreesOf(project, join(stateDir, 'worktrees')),
    model: createScriptedModel(parseScript({ scripts })),
    options: {
      merge,
      landing: { ...landingDefaults, verify, ...landing },
    },
  });
};

const untilAttempt = (running: Running, id: string, attempt: number): Promise<void> =>
  vi.waitFor(
    async () =>
      expect(await running.service.status(id)).toMatchObject({ status: 'complete', attempt }),
    { timeout: 180_000 },
  );
const inMain = ({ root }: Running, path: string): string => readFileSync(join(root, path), 'utf8');

test('after a conflict the next attempt has both sides with markers, and its work can be merged', async () => {
  const running = await start([]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Part')];
  await running.service.merge({ taskId: one });
  expect(await running.service.merge({ taskId: two })).toMatchObject({
    same_lines: true,
    with: [one],
    why: `both main and agent/${two}/1 changed the same lines (${one})`,
  });

  const updated = await running.service.update(two);
  await untilAttempt(running, two, 2);
  const changes = await running.service.diff(two, null);
  const merged = await running.service.merge({ taskId: two });

  expect(updated).toMatchObject({ status: 'sent_back', attempt: 2, paths: ['text'] });
  const seen = inMain(running, 'seen');
  expect(seen).toMatch(/^<{7} \w{40}\nhello\n={7}\nbye\n>{7} \w{40}\n$/);
  expect(changes.patch).toContain('-hello\n+both\n');
  expect(merged).toMatchObject({ status: 'merged' });
  expect(inMain(running, 'text')).toBe('both\n');
  expect(gitIn(running.root, 'log', '-p', '-m', `agent/${two}/2`, '--', 'text')).not.toContain(
    '+<<<',
  );
});

test('an attempt that leaves a conflict marker is not complete before it is gone', async () => {
  const running = await start([]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Late')];
  await running.service.merge({ taskId: one });
  await running.service.update(two);
  await untilAttempt(running, two, 2);
  await running.service.merge({ taskId: two });

  expect(inMain(running, 'text')).toBe('both\n');
  const frames = running.store.read({ taskId: two, after: 0, limit: 1_000 });
  expect(frames.some(({ data }) => data.includes('conflict markers are left in text'))).toBe(true);
});

test('work that fits the branch gets what is new there, is tested with it, and shows its own changes alone', async () => {
  const running = await start([check]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Other')];
  await running.service.merge({ taskId: one });

  const updated = await running.service.update(two);
  const again = await running.service.update(two);
  const { work } = await running.service.status(two);
  const told = running.store.read({ taskId: two, after: 0, limit: 1_000 });
  expect(told.some(({ data }) => data.includes('its branch has what is new on main'))).toBe(true);
  const changes = await running.service.diff(two, null, { names: true });
  const merged = await running.service.merge({ taskId: two, squash: false });

  expect(updated).toMatchObject({ attempt: 1, status: 'updated', tested: [check] });
  expect(again).toMatchObject({ attempt: 1, status: 'current', tested: [check] });
  expect(changes.files).toEqual([{ path: 'other.txt' }]);
  expect(work).toMatchObject({ files: 1, insertions: 1 });
  expect(merged).toMatchObject({ status: 'merged' });
  expect(gitIn(running.root, 'rev-parse', 'main')).toBe(updated.commit);
});

test('work that fails with the branch goes to another attempt, which is told the output', async () => {
  const running = await start([check]);
  const [one, two] = [await complete(running, 'Rename'), await complete(running, 'Call')];
  await running.service.merge({ taskId: one });
  expect(await running.service.merge({ taskId: two })).toMatchObject({ with: [one] });

  const updated = await running.service.update(two);
  await untilAttempt(running, two, 2);
  const merged = await running.service.merge({ taskId: two });

  expect(updated).toMatchObject({ status: 'sent_back', attempt: 2 });
  expect(merged).toMatchObject({ status: 'merged', tested: [check] });
  expect(inMain(running, 'calls-1')).toBe('sum\n');
});

test('with on_red: send_back refused work is mended and merged without a person', async () => {
  const running = await start([check], { onRed: 'send_back' });
  const [one, two] = [await complete(running, 'Rename'), await complete(running, 'Call')];
  await running.service.merge({ taskId: one });
  await running.service.merge({ taskId: two });

  const sent = await running.service.status(two);
  await untilAttempt(running, two, 2);

  expect(sent.work?.merge).toEqual({
    state: 'waiting',
    message: expect.stringMatching(`^it fails together with ${one} `),
  });
  expect(await running.service.status(two)).toMatchObject({ work: { merge: { state: 'landed' } } });
  expect(inMain(running, 'calls-1')).toBe('sum\n');
});

test('work is sent back at most max_rounds times; then a person decides', async () => {
  const running = await start([check], { onRed: 'send_back', maxRounds: 2 });
  const [one, two] = [await complete(running, 'Rename'), await complete(running, 'Stubborn')];
  await running.service.merge({ taskId: one });
  await running.service.merge({ taskId: two });

  await untilAttempt(running, two, 3);

  expect(await running.service.status(two)).toMatchObject({
    attempt: 3,
    work: { merge: { state: 'refused' } },
  });
  expect(existsSync(join(running.root, 'calls-1'))).toBe(false);
});

test('work that is merged at its end is sent back before its task is complete', async () => {
  const running = await start([check], { onConflict: 'resolve', onRed: 'send_back' }, 'squash');
  const [one, two] = [
    await running.service.create({ description: 'Greet' }),
    await running.service.create({ description: 'Part' }),
  ];
  for (const { task_id: task } of [one, two])
    await running.service.execute({ task, role: 'engineer', options: {} });
  await untilStatus(running, one.task_id, 'complete');
  await untilStatus(running, two.task_id, 'complete');

  const last = await running.service.status(two.task_id);
  const first = await running.service.status(one.task_id);
  expect([first.work?.merge, last.work?.merge]).toEqual([{ state: 'landed' }, { state: 'landed' }]);
  expect([first.attempt, last.attempt].sort()).toEqual([1, 2]);
});

test('markers that a failed attempt left are not merged by force, and the next attempt goes on with them', async () => {
  const running = await start([]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Broken')];
  await running.service.merge({ taskId: one });
  await running.service.update(two);
  await untilStatus(running, two, 'failed');

  const forced = await running.service.merge({ taskId: two, force: true, verify: false });
  const updated = await running.service.update(two);

  expect(forced).toMatchObject({
    status: 'conflict',
    why: 'conflict markers are left in it',
    files: ['text'],
  });
  expect(inMain(running, 'text')).toBe('hello\n');
  expect(updated).toMatchObject({ status: 'sent_back', attempt: 3, paths: ['text'] });
});

test('a branch that fails by itself starts no attempt, by hand or by on_red', async () => {
  const running = await start(['test -e never'], { onRed: 'send_back' });
  const id = await complete(running, 'Other');

  const merged = await running.service.mergeMany({ taskIds: [id], all: false });
  const updated = await running.service.update(id);

  expect(merged.refused).toMatchObject([{ conflict: { unblamed: true } }]);
  expect(merged.refused[0]).not.toHaveProperty('sent_back');
  expect(updated).toMatchObject({
    status: 'refused',
    message: expect.stringMatching(/^main itself does not pass, without this work: /),
  });
  expect(await running.service.status(id)).toMatchObject({ status: 'complete', attempt: 1 });
});

test('work that began with the work of another is no conflict with it when that landed', async () => {
  const running = await start([]);
  const first = await complete(running, 'Greet');
  const { task_id: next } = await running.service.create({
    description: 'Other',
    dependencies: [first],
  });
  await running.service.execute({ task: next, role: 'engineer', options: {} });
  await untilStatus(running, next, 'complete');
  await running.service.merge({ taskId: first });
  commitIn(running.root, 'text', 'a person\n');

  const merged = await running.service.merge({ taskId: next });

  expect(merged).toMatchObject({ status: 'merged' });
  expect(inMain(running, 'text')).toBe('a person\n');
  expect(inMain(running, 'other.txt')).toBe('other\n');
});

test('an attempt begins without a conflict with what landed of the work that it builds on', async () => {
  const running = await start([]);
  const first = await complete(running, 'Greet');
  const then = async (description: string, ...dependencies: string[]): Promise<string> => {
    const { task_id: id } = await running.service.create({ description, dependencies });
    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await untilStatus(running, id, 'complete');
    return id;
  };
  const second = await then('Other', first);
  await running.service.merge({ taskId: first });
  commitIn(running.root, 'text', 'a person\n');

  const third = await then('Rename', second);
  await running.service.merge({ taskId: second });

  expect((await running.service.status(third)).work).not.toHaveProperty('conflicts');
  expect(await running.service.merge({ taskId: third })).toMatchObject({ status: 'merged' });
  expect(inMain(running, 'text')).toBe('a person\n');
});

test('more files in conflict than a command line has room for are work like two, named in part', async () => {
  const running = await start([]);
  const [one, two] = [await complete(running, 'Many 1'), await complete(running, 'Many 2')];
  await running.service.merge({ taskId: one });

  const updated = await running.service.update(two);
  await untilAttempt(running, two, 2);
  const merged = await running.service.merge({ taskId: two });

  expect(updated.paths).toHaveLength(100);
  const frames = running.store.read({ taskId: two, after: 0, limit: 1_000 });
  expect(frames.some(({ data }) => data.includes(' of 2200 files'))).toBe(true);
  expect(merged).toMatchObject({ status: 'merged' });
});

test('of two updates at once one waits for the other', async () => {
  const running = await start([check]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Other')];
  await running.service.merge({ taskId: one });

  const both = await Promise.all([running.service.update(two), running.service.update(two)]);

  expect(both.map(({ status }) => status)).toEqual(['updated', 'current']);
});

test('an update that is tested is shown, and a cancel ends it', async () => {
  const running = await start(['until [ -e never ]; do sleep 0.1; done']);
  const id = await complete(running, 'Other');
  commitIn(running.root, 'new', 'of a person\n');
  const updating = running.service.update(id);
  const mergeOf = async () => (await running.service.status(id)).work?.merge;
  await vi.waitFor(async () =>
    expect(await mergeOf()).toEqual({ state: 'testing', message: 'its update is tested' }),
  );

  const cancelled = await running.service.cancel(id, 'too long');

  expect(await updating).toEqual({
    ...{ task_id: id, attempt: 1, status: 'refused' },
    message: 'a person ended its test',
  });
  expect(cancelled.status).toBe('complete');
  expect(await mergeOf()).toBeUndefined();
  await expect(running.service.cancel(id, null)).rejects.toMatchObject({
    code: 'event_not_allowed',
  });
});

test('a branch that somebody has checked out is not moved', async () => {
  const running = await start([]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Other')];
  await running.service.merge({ taskId: one });
  gitIn(
    running.root,
    'worktree',
    'add',
    '-q',
    join(running.root, '..', `${two}-look`),
    `agent/${two}/1`,
  );

  expect(await running.service.update(two)).toMatchObject({
    status: 'refused',
    message: expect.stringContaining(`you have agent/${two}/1 checked out`),
  });
});

test('an agent reads the branch of the project by its name', async () => {
  const running = await start([]);
  const [one, two] = [await complete(running, 'Greet'), await complete(running, 'Look')];
  await running.service.merge({ taskId: one });
  await running.service.merge({ taskId: two });

  expect(inMain(running, 'looked').split('\n')).toContain('change text');
});

test('a task without work, at work or discarded is not updated, by name', async () => {
  const running = await start([]);
  const { task_id: none } = await running.service.create({ description: 'Other' });
  const gone = await complete(running, 'Greet');
  await running.service.discard(gone, null, null);

  for (const id of [none, gone])
    await expect(running.service.update(id)).rejects.toMatchObject({ code: 'event_not_allowed' });
});
