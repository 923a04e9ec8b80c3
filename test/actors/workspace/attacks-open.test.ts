import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** A repository whose commit has a link to the outside where the disk has a folder. */
const linkInCommit = (link: string): { readonly top: string; readonly outside: string } => {
  const [top, outside] = [makeRepository(), temporaryFolder()];
  mkdirSync(dirname(join(top, link)), { recursive: true });
  symlinkSync(outside, join(top, link));
  gitIn(top, 'add', '-A');
  gitIn(top, 'commit', '--quiet', '-m', 'link');
  rmSync(join(top, link));
  return { top, outside };
};

test.each([['app'], ['packages/app']])(
  'a commit with a link at %s opens no folder outside',
  async (link) => {
    const { top, outside } = linkInCommit(link);
    const project = join(top, 'packages' === dirname(link) ? `${link}/one` : link);
    mkdirSync(project, { recursive: true });
    const workspace = await worktreesOf(project, temporaryFolder());

    await expect(workspace.open(anAttempt())).rejects.toThrow(
      /packages\/app\/one is not a folder|app is not a folder/,
    );

    expect(readdirSync(outside)).toEqual([]);
    expect(gitIn(top, 'branch', '--list', 'agent/*')).toBe('');
  },
);

test('a worktree whose project folder became a link is not opened again', async () => {
  const [top, outside] = [makeRepository(), temporaryFolder()];
  const project = join(top, 'pröject', 'app');
  mkdirSync(project, { recursive: true });
  commitIn(project, 'b.txt', 'b\n');
  const state = temporaryFolder();
  const workspace = await worktreesOf(project, state);
  const { root } = await workspace.open(anAttempt());
  expect((await workspace.open(anAttempt())).root).toBe(root);
  writeFileSync(join(root, 'c.txt'), 'c\n');
  expect((await workspace.diff(anAttempt().taskId, 1))?.patch).toContain('+c');
  renameSync(dirname(root), `${dirname(root)}.old`);
  mkdirSync(join(outside, 'app'));
  symlinkSync(outside, dirname(root));

  await expect((await worktreesOf(project, state)).open(anAttempt())).rejects.toThrow(
    'is not a folder',
  );
});

test('a copy into a worktree follows no link, of earlier work or of the project', {
  tags: ['slow'],
}, async () => {
  const [project, outside] = [makeRepository(), temporaryFolder()];
  commitIn(project, '.gitignore', 'cache/\nlinked\n');
  mkdirSync(join(project, 'packages', 'app', 'cache'), { recursive: true });
  writeFileSync(join(project, 'packages', 'app', 'cache', 'f'), 'x');
  mkdirSync(join(outside, 'secret'));
  symlinkSync(outside, join(project, 'linked'));
  const workspace = await worktreesOf(project, temporaryFolder(), [
    'packages/app/cache',
    'linked/secret',
    'none',
  ]);
  const first = await workspace.open(anAttempt());
  expect(readdirSync(join(first.root, 'packages', 'app', 'cache'))).toEqual(['f']);
  rmSync(join(first.root, 'packages', 'app'), { recursive: true });
  symlinkSync(outside, join(first.root, 'packages', 'app'));
  await workspace.save(anAttempt(), 'x');

  const { root, notes } = await workspace.open(anAttempt(1, 'bd-b'), [anAttempt().taskId]);

  expect(readdirSync(outside)).toEqual(['secret']);
  expect(existsSync(join(root, 'linked'))).toBe(false);
  expect(notes.slice(-2)).toEqual([
    'packages/app/cache was not copied into your folder: a link or a file is on the way there.',
    'linked/secret was not copied into your folder: a link or a file is on the way there.',
  ]);
});

test('files copied into a worktree are not work, also where git does not ignore them', async () => {
  const project = makeRepository();
  mkdirSync(join(project, 'node_modules', 'x'), { recursive: true });
  writeFileSync(join(project, 'node_modules', 'x', 'index.js'), '1');
  writeFileSync(join(project, '.env'), 'A=1');
  const workspace = await worktreesOf(project, temporaryFolder(), ['./node_modules/', '.env']);
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'new.txt'), 'new');

  const copied = readdirSync(root);
  const live = await workspace.diff(anAttempt().taskId, 1);
  await workspace.save(anAttempt(), 'x');

  expect(copied).toEqual(expect.arrayContaining(['.env', 'node_modules', 'new.txt']));
  expect(live?.patch.match(/^diff --git .*/gm)).toEqual(['diff --git a/new.txt b/new.txt']);
  expect(gitIn(project, 'ls-tree', '-r', '--name-only', 'agent/bd-a1/1')).not.toMatch(
    /node_modules|\.env/,
  );
});

test('no other repository of the user is opened by a git dir in the project, nor borrowed from', async () => {
  const [other, pointing, borrowing] = [makeRepository(), temporaryFolder(), makeRepository()];
  mkdirSync(join(pointing, 'g'));
  const planted = {
    HEAD: 'ref: refs/heads/main\n',
    commondir: `${other}/.git\n`,
    gitdir: '../.git\n',
  };
  for (const [name, text] of Object.entries(planted))
    writeFileSync(join(pointing, 'g', name), text);
  writeFileSync(join(pointing, '.git'), 'gitdir: g\n');
  writeFileSync(
    join(borrowing, '.git', 'objects', 'info', 'alternates'),
    `${other}/.git/objects\n`,
  );
  const opened = async (project: string) =>
    (await worktreesOf(project, temporaryFolder())).open(anAttempt());

  await expect(opened(pointing)).rejects.toThrow(`which is no worktree of ${other}/.git`);
  await expect(opened(borrowing)).rejects.toThrow(`borrows objects from ${other}/.git/objects`);

  expect(gitIn(other, 'branch', '--list', 'agent/*')).toBe('');
  gitIn(borrowing, 'repack', '-a', '-d');
  rmSync(join(borrowing, '.git', 'objects', 'info', 'alternates'));
  expect(existsSync((await opened(borrowing)).root)).toBe(true);
});

test('a path that is too long for the system is left out and named, whatever ignore rules there are', async () => {
  const project = makeRepository();
  commitIn(project, '.gitignore', 'x\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  const name = 'm'.repeat(250);
  const nested = `: > work; i=0; while [ $i -lt 17 ]; do mkdir ${name} && cd ${name}; i=$((i+1)); done; : > f; : > .gitignore`;
  execFileSync('/bin/sh', ['-c', nested], { cwd: root });

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved).toMatchObject({
    files: 1,
    notes: [`${'m'.repeat(100)}… was not saved: its path is too long`],
  });
  // Node removes no path that is too long: it is gone before the test's folders are removed.
  expect(await workspace.sweep(() => true)).toEqual([]);
});

test('a worktree that cannot be removed is saved, and the next sweep removes it', async () => {
  const [project, state] = [makeRepository(), temporaryFolder()];
  const workspace = await worktreesOf(project, state);
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'b\n');
  writeFileSync(join(state, 'removed'), 'a file in the way');

  expect(await workspace.save(anAttempt(), 'x')).toMatchObject({ files: 1 });
  expect(existsSync(root)).toBe(true);

  rmSync(join(state, 'removed'));
  expect(await workspace.sweep(() => true)).toEqual([]);
  expect(existsSync(root)).toBe(false);
});
