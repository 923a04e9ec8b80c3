import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landingDefaults, type Running, startSystem, untilStatus } from '../../support/running.ts';

/** The file `items/lock` lists the folder `items`, as a lock file lists packages. */
const list = 'cd items && ls | grep -v lock > lock';
const check = `cp items/lock /tmp/lock.$$ && ${list} && cd .. && cmp items/lock /tmp/lock.$$; code=$?; rm -f /tmp/lock.$$; exit $code`;
const adding = (title: string, more = 'true') => ({
  title,
  turns: [
    { calls: [{ tool: 'bash', arguments: { command: `echo > items/${title}; ${list}` } }] },
    { calls: [{ tool: 'bash', arguments: { command: more } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ],
});
const scripts = [
  adding('cat'),
  adding('dog'),
  adding('eel', 'echo eel > text'),
  adding('fox', 'echo fox > text'),
];

const start = (regenerate: Readonly<Record<string, string>>): Promise<Running> => {
  const root = makeRepository();
  mkdirSync(join(root, 'items'));
  commitIn(root, 'items/bee', '\n');
  commitIn(root, 'items/lock', 'bee\n');
  commitIn(root, 'text', 'text\n');
  return startSystem({
    root,
    workspace: (project, stateDir) => worktreesOf(project, join(stateDir, 'worktrees')),
    model: createScriptedModel(parseScript({ scripts })),
    options: { landing: { ...landingDefaults, verify: [check], regenerate } },
  });
};

const complete = async (running: Running, title: string): Promise<string> => {
  const { task_id: id } = await running.service.create({ description: title });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete');
  return id;
};
const mergeAll = ({ service }: Running) =>
  service.mergeMany({ taskIds: [], all: true }, AbortSignal.timeout(60_000));

test('a file that a command makes is made anew in the merge, which is tested with it', async () => {
  const running = await start({ 'items/lock': list });
  for (const title of ['cat', 'dog', 'eel']) await complete(running, title);

  const { landed, refused } = await mergeAll(running);

  expect(refused).toEqual([]);
  expect(landed.map(({ tested }) => tested)).toEqual([[check], [check], [check]]);
  expect(readFileSync(join(running.root, 'items/lock'), 'utf8')).toBe('bee\ncat\ndog\neel\n');
  expect(gitIn(running.root, 'status', '--porcelain', '--untracked-files=no')).toBe('');
  // Each commit has what it needs, not only the last one.
  expect(gitIn(running.root, 'show', 'HEAD~1:items/lock')).toBe('bee\ncat\ndog');
});

test.each([
  ['fails', 'echo no items; exit 3', 'exit code 3'],
  ['leaves a link', 'ln -sf /etc/passwd items/lock', 'left no regular file items/lock'],
  ['leaves a link above it', 'mv items x && ln -s /etc items', 'left no regular file items/lock'],
])(
  'a command that %s refuses the work by that name, and the rest lands',
  async (_, command, why) => {
    const running = await start({ 'items/lock': command });
    const [one, two] = [await complete(running, 'cat'), await complete(running, 'dog')];

    const { landed, refused } = await mergeAll(running);

    expect(landed.map(({ task_id }) => task_id)).toEqual([one]);
    expect(refused).toMatchObject([
      { task_id: two, code: 'merge_conflict', paths: ['items/lock'] },
    ]);
    expect(refused[0]?.message).toContain(why);
  },
);

test('a conflict in another file stays one', async () => {
  const running = await start({ 'items/lock': list });
  const [, two] = [await complete(running, 'eel'), await complete(running, 'fox')];

  const { refused } = await mergeAll(running);

  expect(refused).toMatchObject([{ task_id: two, paths: ['items/lock', 'text'] }]);
});
