import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import type { Workspace } from '../../../src/actors/workspace/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const put = (folder: string, files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
};

interface Work {
  readonly task?: string;
  readonly after?: readonly string[];
  readonly isComplete?: boolean;
}

/** An attempt that changes its folder, and ends. */
const workOn = async (
  workspace: Workspace,
  change: (root: string) => void,
  { task = 'bd-a1', after = [], isComplete = true }: Work = {},
) => {
  const attempt = anAttempt(1, task);
  const { root, notes } = await workspace.open(attempt, after as TaskId[]);
  change(root);
  return { notes, saved: await workspace.save(attempt, 'Change it', isComplete) };
};

const merge = (workspace: Workspace, task = 'bd-a1', mode: 'ff' | 'squash' = 'squash') =>
  landAlone(workspace, task as TaskId, 1, mode, 'Change it');

/** A project with tracked files, and ignored files of the user. */
const projectWith = (ignored: Readonly<Record<string, string>>): string => {
  const project = makeRepository();
  put(project, { '.gitignore': 'local.db\nnode_modules/\ndata\n', 'd/x.txt': 'x\n' });
  gitIn(project, 'add', '-A');
  gitIn(project, 'commit', '--quiet', '-m', 'more');
  put(project, ignored);
  return project;
};

const replaced = (root: string): void => rmSync(join(root, 'd'), { recursive: true });

test.each([
  [
    'a folder over a file',
    'local.db',
    'local.db',
    (root: string) => put(root, { '.gitignore': '', 'local.db/f': 'f' }),
  ],
  [
    'a file over a folder',
    'd/local.db',
    'd/local.db',
    (root: string) => {
      replaced(root);
      put(root, { d: 'file\n' });
    },
  ],
  [
    'a link over a folder',
    'd/node_modules/m/i.js',
    'd/node_modules/m/i.js',
    (root: string) => {
      replaced(root);
      symlinkSync('a.txt', join(root, 'd'));
    },
  ],
])('a file of the user that git ignores is never lost to %s', async (_, file, inTheWay, change) => {
  const project = projectWith({ [file]: 'precious\n' });
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, change);

  expect(await merge(workspace)).toMatchObject({
    status: 'conflict',
    why: 'the project folder has files of yours at the same paths: move or commit them first',
    files: [inTheWay],
  });
  expect(readFileSync(join(project, file), 'utf8')).toBe('precious\n');
});

test('a link of the user that git ignores is never replaced by a folder', async () => {
  const project = projectWith({});
  symlinkSync(temporaryFolder(), join(project, 'data'));
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, (root) => put(root, { '.gitignore': '', 'data/f': 'f' }));

  expect(await merge(workspace)).toMatchObject({ status: 'conflict', files: ['data'] });
  expect(lstatSync(join(project, 'data')).isSymbolicLink()).toBe(true);
});

test('replaces a folder if the work deletes every file in it', async () => {
  const project = projectWith({});
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, (root) => {
    replaced(root);
    put(root, { d: 'file\n' });
    rmSync(join(root, 'a.txt'));
    put(root, { 'a.txt/x': 'x\n' });
  });

  expect(await merge(workspace)).toMatchObject({ status: 'merged' });
  expect(readFileSync(join(project, 'd'), 'utf8')).toBe('file\n');
  expect(readFileSync(join(project, 'a.txt', 'x'), 'utf8')).toBe('x\n');
});

test.each(['ff', 'squash'] as const)(
  '%s: a task is merged after the work of other tasks that it began with',
  { tags: ['slow'] },
  async (mode) => {
    const project = makeRepository();
    const workspace = await worktreesOf(project, temporaryFolder());
    await workOn(workspace, (root) => put(root, { 'b.txt': 'b\n' }));
    await workOn(workspace, (root) => put(root, { 'c.txt': 'c\n' }), {
      task: 'bd-a2',
      after: ['bd-a1'],
    });
    await workOn(workspace, (root) => put(root, { 'd.txt': 'd\n' }), {
      task: 'bd-a3',
      after: ['bd-a2'],
    });
    const head = gitIn(project, 'rev-parse', 'HEAD');

    for (const task of ['bd-a2', 'bd-a3'])
      expect(await merge(workspace, task, mode)).toMatchObject({
        status: 'conflict',
        why: "bd-a1's work is in it and is not merged yet",
        merge_first: { task_id: 'bd-a1', attempt: 1, complete: true },
      });
    expect(gitIn(project, 'rev-parse', 'HEAD')).toBe(head);
    for (const task of ['bd-a1', 'bd-a2', 'bd-a3'])
      expect(await merge(workspace, task, mode)).toMatchObject({ status: 'merged' });
    expect(gitIn(project, 'ls-files')).toBe('a.txt\nb.txt\nc.txt\nd.txt');
  },
);

test('a squash of a later attempt on the same branch merges the earlier one, too', {
  tags: ['slow'],
}, async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, (root) => put(root, { 'b.txt': 'b\n' }));
  await workOn(workspace, (root) => put(root, { 'c.txt': 'c\n' }), {
    task: 'bd-a2',
    after: ['bd-a1'],
  });
  const sentBack = { ...anAttempt(2), review: { continues: 1, comments: [] } };
  const { root } = await workspace.open(sentBack);
  put(root, { 'd.txt': 'd\n' });
  await workspace.save(sentBack, 'Change it');

  await landAlone(workspace, 'bd-a1' as TaskId, 2, 'squash', 'Change it');

  expect(await merge(workspace, 'bd-a2')).toMatchObject({ status: 'merged' });
  expect(gitIn(project, 'ls-files')).toBe('a.txt\nb.txt\nc.txt\nd.txt');
});

test('work that the user merged in another way counts as merged', { tags: ['slow'] }, async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, (root) => put(root, { 'b.txt': 'b\n' }));
  await workOn(workspace, (root) => put(root, { 'c.txt': 'c\n' }), {
    task: 'bd-a2',
    after: ['bd-a1'],
  });
  gitIn(project, 'merge', '--quiet', '--squash', 'agent/bd-a1/1');
  gitIn(project, 'commit', '--quiet', '-m', 'by hand');

  expect(await merge(workspace)).toEqual({
    status: 'nothing',
    commit: gitIn(project, 'rev-parse', 'HEAD'),
  });
  expect(await merge(workspace, 'bd-a2')).toMatchObject({ status: 'merged' });
});

test('incomplete work is in no other folder, also when it became incomplete later', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  const evil = (root: string): void => put(root, { 'evil.sh': 'evil\n' });
  await workOn(workspace, evil, { isComplete: false });
  await workOn(workspace, evil, { task: 'bd-a2' });
  await workspace.save(anAttempt(1, 'bd-a2'), 'Change it', false);
  const names: string[] = [];

  const { notes } = await workOn(workspace, (root) => names.push(...readdirSync(root)), {
    task: 'bd-a3',
    after: ['bd-a1', 'bd-a2'],
  });

  expect(names).not.toContain('evil.sh');
  expect(notes).toEqual([
    'The work of bd-a1 on the branch agent/bd-a1/1 is not complete and is not in your folder.',
    'The work of bd-a2 on the branch agent/bd-a2/1 is not complete and is not in your folder.',
  ]);
});

test.each([
  ['a project with git', makeRepository],
  ['a project without git', temporaryFolder],
])(
  'work of two attempts that together would form a repository: %s',
  { tags: ['slow'] },
  async (_, make) => {
    const project = make();
    const workspace = await worktreesOf(project, temporaryFolder());
    for (const [at, folder] of ['', 'docs/'].entries()) {
      const [one, two, both] = [`bd-a${at}1`, `bd-a${at}2`, `bd-a${at}3`];
      const head = { [`${folder}HEAD`]: 'ref: refs/heads/main\n', [`${folder}refs/x`]: 'x' };
      await workOn(workspace, (root) => put(root, head), { task: one });
      await workOn(workspace, (root) => put(root, { [`${folder}objects/x`]: 'x' }), { task: two });

      const attempt = anAttempt(1, both);
      const { root, conflicts } = await workspace.open(attempt, [one, two] as TaskId[]);

      expect([
        existsSync(join(root, folder, 'HEAD')),
        existsSync(join(root, folder, 'objects')),
      ]).toEqual([true, false]);
      expect(conflicts).toEqual([
        { taskId: two, branch: `agent/${two}/1`, files: [folder === '' ? '.' : 'docs'] },
      ]);
      expect(await merge(workspace, one)).toMatchObject({ status: 'merged' });
      expect(await merge(workspace, two)).toMatchObject({
        status: 'conflict',
        why: expect.stringContaining('the work turns a folder into a git repository'),
      });
      expect(existsSync(join(project, folder, 'objects'))).toBe(false);
      rmSync(join(project, folder, 'HEAD'));
      if (at === 0 && existsSync(join(project, '.git')))
        gitIn(project, 'commit', '--quiet', '-am', 'away');
    }
  },
);
