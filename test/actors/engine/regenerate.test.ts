import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { complete, landingDefaults, type Running, startSystem } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

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
  ...['one', 'two'].map((title) => ({
    title,
    turns: [
      { calls: [{ tool: 'bash', arguments: { command: `echo ${title} > constructor` } }] },
      { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
    ],
  })),
];

const start = (
  regenerate: Readonly<Record<string, string>>,
  verify: readonly string[] = [check],
): Promise<Running> => {
  const root = makeRepository();
  mkdirSync(join(root, 'items'));
  commitIn(root, 'items/bee', '\n');
  commitIn(root, 'items/lock', 'bee\n');
  commitIn(root, 'text', 'text\n');
  return startSystem({
    root,
    workspace: (project, stateDir) => worktreesOf(project, join(stateDir, 'worktrees')),
    model: createScriptedModel(parseScript({ scripts })),
    options: { landing: { ...landingDefaults, verify, regenerate } },
  });
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

test('an update pays no attempt for files that a merge makes anew, unless that failed', async () => {
  const ready = join(temporaryFolder(), 'ready');
  const running = await start({ 'items/lock': `[ -e ${ready} ] && ${list}` });
  const taskIds = [await complete(running, 'cat'), await complete(running, 'dog')];
  const three = await complete(running, 'eel');
  const { refused } = await running.service.mergeMany({ taskIds, all: false });
  writeFileSync(ready, '');
  const [, two = ''] = taskIds;

  expect(await running.service.update(three)).toMatchObject({
    status: 'refused',
    message: `only files of merge.regenerate conflict, which a merge makes anew: agent merge ${three}`,
    paths: ['items/lock'],
  });
  expect((await running.service.status(three)).attempt).toBe(1);
  expect(refused).toMatchObject([{ task_id: two }]);
  expect(await running.service.update(two)).toMatchObject({ status: 'sent_back', attempt: 2 });
});

test('work that is discarded while its file is made anew does not land, and the rest does', async () => {
  const folder = temporaryFolder();
  const [begun, release] = [join(folder, 'begun'), join(folder, 'go')];
  const slow = `echo > ${begun}; until [ -e ${release} ]; do sleep 0.1; done; ${list}`;
  const running = await start({ 'items/lock': slow });
  const [one, two] = [await complete(running, 'cat'), await complete(running, 'dog')];
  const three = await complete(running, 'eel');
  const merging = mergeAll(running);
  await vi.waitFor(() => expect(existsSync(begun)).toBe(true), { timeout: 10_000 });

  await running.service.discard(two, null, null);
  writeFileSync(release, '');
  const { landed, refused } = await merging;

  expect(landed.map(({ task_id }) => task_id)).toEqual([one, three]);
  expect(refused).toMatchObject([{ task_id: two, message: 'it was discarded' }]);
  expect(readFileSync(join(running.root, 'items/lock'), 'utf8')).toBe('bee\ncat\neel\n');
});

test('a command that removes the folder refuses its own work alone', async () => {
  const running = await start({ 'items/lock': 'rm -rf "$PWD"' });
  for (const title of ['cat', 'dog']) await complete(running, title);
  const other = await complete(running, 'eel');

  const { landed, refused } = await mergeAll(running);

  expect([landed.length, refused.length]).toEqual([1, 2]);
  expect(refused.map(({ code }) => code)).toEqual(['merge_conflict', 'merge_conflict']);
  expect(await running.service.status(other)).toMatchObject({ status: 'complete' });
});

test('what failed is tried again, and a file keeps its bytes and its mode', async () => {
  const ready = join(temporaryFolder(), 'ready');
  const bytes = String.raw`printf '\377\376\001\200' > items/lock`;
  const running = await start({ 'items/lock': `[ -e ${ready} ] && ${bytes}` }, []);
  for (const title of ['cat', 'dog']) await complete(running, title);
  gitIn(running.root, 'update-index', '--chmod=+x', 'items/lock');
  gitIn(running.root, 'commit', '-qm', 'a program');
  gitIn(running.root, 'checkout', '-q', '-f');
  expect((await mergeAll(running)).refused).toHaveLength(1);
  writeFileSync(ready, '');

  expect((await mergeAll(running)).refused).toEqual([]);
  expect(readFileSync(join(running.root, 'items/lock')).toString('hex')).toBe('fffe0180');
  expect(gitIn(running.root, 'ls-tree', 'HEAD', 'items/lock')).toMatch(/^100755/);
});

test('a conflict in another file stays one', async () => {
  const running = await start({ 'items/lock': list });
  const [, two] = [await complete(running, 'eel'), await complete(running, 'fox')];

  const { refused } = await mergeAll(running);

  expect(refused).toMatchObject([{ task_id: two, paths: ['items/lock', 'text'] }]);
});

test('a file may have the name of a property of every object', async () => {
  const running = await start({ 'items/lock': list }, []);
  const [, two] = [await complete(running, 'one'), await complete(running, 'two')];

  const { refused } = await mergeAll(running);

  expect(refused).toMatchObject([{ task_id: two, paths: ['constructor'] }]);
  expect(refused[0]?.message).toContain('changed the same lines');
});
