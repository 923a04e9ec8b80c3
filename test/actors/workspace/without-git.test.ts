import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt, describeWorkspace } from '../../contracts/workspace.ts';
import { gitIn, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;

const makeFolder = (): string => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\nthree\n');
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'src', 'b.txt'), 'b\n');
  return folder;
};

const makeEmptyRepository = (): string => {
  const folder = makeFolder();
  gitIn(folder, 'init', '--quiet');
  return folder;
};

describeWorkspace('without git', () => worktreesOf(makeFolder(), temporaryFolder()));

describe.each([
  ['no repository', makeFolder, 'this project is no git repository'],
  ['no commit', makeEmptyRepository, 'this repository has no commit yet'],
])('a project with %s', (_, make, why) => {
  test('has its work saved in a copy, and shown and merged as with git', async () => {
    const project = make();
    const workspace = await worktreesOf(project, temporaryFolder());
    const before = readdirSync(project);

    const { root } = await workspace.open(anAttempt());
    const found = readFileSync(join(root, 'src', 'b.txt'), 'utf8');
    writeFileSync(join(root, 'a.txt'), 'one\n2\nthree\n');
    const live = await workspace.diff(id, null);
    const saved = await workspace.save(anAttempt(), 'Change it');
    const untouched = readFileSync(join(project, 'a.txt'), 'utf8');
    const merged = await landAlone(workspace, id, 1, 'ff', 'Change it');

    expect(workspace.describe()).toBe(`a copy of the project folder for each attempt (${why})`);
    expect([found, untouched]).toEqual(['b\n', 'one\ntwo\nthree\n']);
    expect(live?.patch).toMatch(/-two\n\+2\n/);
    expect(saved).toMatchObject({ files: 1, insertions: 1, deletions: 1 });
    expect(merged).toMatchObject({ status: 'merged', into: 'the project folder' });
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\n2\nthree\n');
    expect(readdirSync(project)).toEqual(before);
    expect(await landAlone(workspace, id, 1, 'ff', 'Change it')).toMatchObject({
      status: 'nothing',
    });
  });
});

test("the user's change in the same lines is a conflict, and elsewhere it is kept", {
  tags: ['slow'],
}, async () => {
  const project = makeFolder();
  const workspace = await worktreesOf(project, temporaryFolder());
  for (const [task, file] of [
    ['bd-a1', 'a.txt'],
    ['bd-b', 'c.txt'],
  ] as const) {
    const { root } = await workspace.open(anAttempt(1, task));
    writeFileSync(join(root, file), 'theirs\n');
    await workspace.save(anAttempt(1, task), 'x');
  }
  writeFileSync(join(project, 'a.txt'), 'precious\n');

  expect(await landAlone(workspace, id, 1, 'squash', 'x')).toMatchObject({
    status: 'conflict',
    files: ['a.txt'],
  });
  expect(await landAlone(workspace, 'bd-b' as TaskId, 1, 'ff', 'x')).toMatchObject({
    status: 'conflict',
    why: 'the project folder has moved on since the attempt began; it cannot be fast-forwarded',
  });
  expect(await landAlone(workspace, 'bd-b' as TaskId, 1, 'squash', 'x')).toMatchObject({
    status: 'merged',
  });
  expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('precious\n');
  expect(readFileSync(join(project, 'c.txt'), 'utf8')).toBe('theirs\n');
});

test('a copy has everything but ignored files and what tools make', async () => {
  const project = makeFolder();
  writeFileSync(join(project, '.gitignore'), '*.log\n');
  for (const path of ['node_modules/x', '.beads', 'src/__pycache__'])
    mkdirSync(join(project, path), { recursive: true });
  for (const path of [
    'x.log',
    'node_modules/x/i.js',
    '.beads/issues.jsonl',
    'src/__pycache__/x.pyc',
    'src/c.txt',
  ])
    writeFileSync(join(project, path), 'x');
  const workspace = await worktreesOf(project, temporaryFolder());

  const { root } = await workspace.open(anAttempt());

  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name !== '.git',
  );
  expect(files.sort()).toEqual(['.gitignore', 'a.txt', 'src', 'src/b.txt', 'src/c.txt']);
});

test('a repository that an agent plants is in neither its work nor the project', async () => {
  const project = makeFolder();
  const workspace = await worktreesOf(project, temporaryFolder(), [], { sandboxed: true });
  const { root } = await workspace.open(anAttempt());
  rmSync(join(root, '.git'), { recursive: true });
  gitIn(root, 'init', '--quiet');
  gitIn(root, 'init', '--quiet', 'deep');
  gitIn(root, 'init', '--quiet', '--bare', 'bare');
  gitIn(root, 'init', '--quiet', '--bare', '.');
  writeFileSync(join(root, 'deep', 'c.txt'), 'c\n');

  const saved = await workspace.save(anAttempt(), 'x');
  await landAlone(workspace, id, 1, 'ff', 'x');

  expect(saved?.notes).toContain(
    'deep is a repository of its own; its files were saved, its history was not',
  );
  expect(saved?.notes).toContain(
    'bare was not saved: it would turn the folder into a git repository',
  );
  const names = ['.git', 'HEAD', 'deep/.git', 'bare', 'deep/c.txt'];
  expect(names.map((name) => existsSync(join(project, name)))).toEqual([
    false,
    false,
    false,
    false,
    true,
  ]);
});

test('many attempts are opened, diffed and saved at once', { tags: ['slow'] }, async () => {
  const project = temporaryFolder();
  writeFileSync(join(project, 'a.txt'), 'a\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const one = async (number: number): Promise<number | undefined> => {
    const attempt = anAttempt(1, `bd-c${number}`);
    const { root } = await workspace.open(attempt);
    writeFileSync(join(root, `${number}.txt`), 'x\n');
    for (let look = 0; look < 3; look += 1) await workspace.diff(attempt.taskId, 1);
    return (await workspace.save(attempt, 'x'))?.files;
  };

  const files = await Promise.all(Array.from({ length: 8 }, (_, number) => one(number)));

  expect(files).toEqual(Array.from({ length: 8 }, () => 1));
});
