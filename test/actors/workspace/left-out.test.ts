import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createFinishedWork } from '../../../src/actors/workspace/worktrees/finished-work.ts';
import type { WorkspaceOptions } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;

/** A project that ignores `out/` and packages, and its first attempt. */
const open = async (more: Partial<WorkspaceOptions> = {}) => {
  const project = makeRepository();
  commitIn(project, '.gitignore', 'out/\n*.log\nnode_modules/\n');
  const workspace = await worktreesOf(project, temporaryFolder(), [], more);
  const { root } = await workspace.open(anAttempt());
  const write = (path: string, text = 'r\n') => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const end = async () => {
    const saved = await workspace.save(anAttempt(), 'Change it');
    return {
      saved,
      work: await workspace.workOf(id, 1),
      notes: await workspace.leftOut(id, 1),
    };
  };
  const kept = (path: string) => join(project, '.beads/tasks/task-bd-a1/files/1', path);
  return { project, workspace, root, write, end, kept };
};

describe('files that git ignores', () => {
  test('are named with their size, also when nothing else changed', async () => {
    const { write, end } = await open();
    write('out/report.md', 'report\n');
    write('src/out/deep/more.md', 'more\n');
    write('debug.log');
    write('node_modules/pkg/index.js');

    const { saved, work, notes } = await end();

    expect(saved).toBeNull();
    const reason = 'git ignores it';
    expect(work).toEqual({
      ...{ files: 0, insertions: 0, deletions: 0, notes },
      left: expect.arrayContaining([
        { path: 'out/', reason, bytes: 7 },
        { path: 'src/out/', reason, bytes: 5 },
        { path: 'debug.log', reason, bytes: 2 },
      ]),
    });
    expect(notes).toHaveLength(3);
    expect(notes).toContain('out/ was not saved: git ignores it (7 B)');
  });

  test('are named beside what was saved', async () => {
    const { write, end } = await open();
    write('out/report.md');
    write('b.txt');

    const { saved, work } = await end();

    expect(saved).toMatchObject({ files: 1, notes: [expect.stringContaining('out/ was not')] });
    expect(work?.left).toEqual([{ path: 'out/', reason: 'git ignores it', bytes: 2 }]);
  });

  test('are copied into the results of the task where workspace.keep says so', async () => {
    const { write, end, kept, root } = await open({ keep: ['out/**/*.md', '*.log'] });
    write('out/a/report.md', 'report\n');
    write('out/b.md', 'b\n');
    write('out/data.bin');
    write('out/.vscode/settings.md');
    write('debug.log');
    symlinkSync('/etc/passwd', join(root, 'out/link.md'));

    const { work } = await end();

    expect(readFileSync(kept('out/a/report.md'), 'utf8')).toBe('report\n');
    expect(readFileSync(kept('out/b.md'), 'utf8')).toBe('b\n');
    for (const not of ['out/data.bin', 'out/.vscode', 'out/link.md'])
      expect(existsSync(kept(not))).toBe(false);
    const place = '.beads/tasks/task-bd-a1/files/1';
    expect(work?.left).toEqual(
      expect.arrayContaining([
        {
          path: 'out/',
          bytes: 13,
          reason: `git ignores it; 2 of its files are in ${place}`,
        },
        { path: 'debug.log', bytes: 2, reason: `git ignores it; a copy is in ${place}` },
      ]),
    );
  });
});

describe('what an agent committed elsewhere', () => {
  const openGit = async () => {
    const scene = await open();
    const git = (...args: readonly string[]) => gitIn(scene.root, ...args);
    const commit = (file: string) => commitIn(scene.root, file, `${file}\n`);
    const branches = () =>
      gitIn(scene.project, 'branch', '--list', '--format=%(refname:short)', 'agent/*').split('\n');
    const filesOn = (name: string) =>
      gitIn(scene.project, 'ls-tree', '-r', '--name-only', name).split('\n');
    return { ...scene, git, commit, branches, filesOn };
  };

  test('on another branch is kept beside the branch of the attempt', async () => {
    const { project, git, commit, end, branches, filesOn } = await openGit();
    git('checkout', '-q', '-b', 'fix/x');
    mkdirSync(join(git('rev-parse', '--show-toplevel'), 'deep/er'), { recursive: true });
    commit('deep/er/s.txt');
    git('rm', '-q', 'a.txt');
    git('commit', '-q', '-m', 'without a');
    git('checkout', '-q', '-');

    const { saved, work, notes } = await end();

    const kept = 'agent/bd-a1/1-fix-x';
    expect([saved, branches()]).toEqual([null, [kept]]);
    expect(work?.left).toEqual([{ ref: 'fix/x', reason: `it is on the branch ${kept}` }]);
    expect(notes).toEqual([`What the agent had on fix/x is on the branch ${kept}`]);
    expect(filesOn(kept)).toEqual(['.gitignore', 'deep/er/s.txt']);
    expect(gitIn(project, 'show', `${kept}:deep/er/s.txt`)).toBe('deep/er/s.txt');
    expect(gitIn(project, 'log', '-1', '--format=%B', kept)).toBe(
      'without a\n\nTask: bd-a1\nAttempt: 1\nRole: engineer',
    );
    expect(gitIn(project, 'fsck', '--strict', '--no-dangling')).toBe('');
  });

  test('is offered for removal until somebody merged it', async () => {
    const { project, git, commit, end, branches } = await openGit();
    const work = createFinishedWork({
      ...{
        program: '/usr/bin/git',
        projectRoot: project,
        folder: join(git('rev-parse', '--show-toplevel'), '..'),
      },
      ...{ copies: [], filters: [], sandboxed: false, description: '', keep: [], common: null },
    });
    git('checkout', '-q', '-b', 'fix');
    commit('b.txt');
    git('checkout', '-q', '-');
    await end();

    const [found, ...others] = await work.all();

    expect(others).toEqual([]);
    expect(found).toMatchObject({ branch: null, beside: ['agent/bd-a1/1-fix'], isUnmerged: true });
    expect(found && (await work.pruneBeside(found))).toBeNull();
    expect(branches()).toEqual(['']);
    expect(await work.all()).toMatchObject([{ beside: [], isUnmerged: false }]);
  });

  test('as a stash with new files, a tag and a detached commit is kept, too', async () => {
    const { git, commit, end, write, branches, filesOn } = await openGit();
    write('a.txt', 'stashed\n');
    write('new.txt');
    git('stash', '-q', '--include-untracked');
    git('checkout', '-q', '--detach');
    commit('detached.txt');
    const detached = git('rev-parse', 'HEAD').slice(0, 12);
    git('checkout', '-q', '-');
    git('checkout', '-q', '-b', 'gone');
    commit('tagged.txt');
    git('tag', '-a', '-m', 'my tag', 'v1');
    git('checkout', '-q', '-');
    git('branch', '-q', '-D', 'gone');
    write('b.txt');

    const { saved } = await end();

    expect(saved).toMatchObject({ branch: 'agent/bd-a1/1', files: 1 });
    const names = [detached, 'stash-0', 'v1'].map((name) => `agent/bd-a1/1-${name}`);
    expect(branches()).toEqual(['agent/bd-a1/1', ...names]);
    const [ofDetached = '', stash = '', tag = ''] = names;
    expect(filesOn(ofDetached)).toEqual(['.gitignore', 'a.txt', 'detached.txt']);
    expect(filesOn(stash)).toEqual(['.gitignore', 'a.txt', 'new.txt']);
    expect(filesOn(tag)).toEqual(['.gitignore', 'a.txt', 'tagged.txt']);
  });

  test.each([
    ['refs/foo/x', 'agent/bd-a1/1-refs-foo-x'],
    ['refs/original/refs/heads/main', 'agent/bd-a1/1-refs-original-refs-heads-main'],
    ['refs/remotes/origin/x', 'agent/bd-a1/1-refs-remotes-origin-x'],
    ['refs/bisect/good-1', 'agent/bd-a1/1-refs-bisect-good-1'],
    ['refs/x', 'agent/bd-a1/1-refs-x'],
  ])('under %s is kept, loose and packed', async (ref, kept) => {
    for (const isPacked of [false, true]) {
      const { git, commit, end, branches, filesOn } = await openGit();
      git('checkout', '-q', '-b', 'other');
      commit('b.txt');
      git('update-ref', ref, 'HEAD');
      git('checkout', '-q', '-');
      git('branch', '-q', '-D', 'other');
      if (isPacked) git('pack-refs', '--all');

      const { work } = await end();

      expect(branches()).toEqual([kept]);
      expect(filesOn(kept)).toEqual(['.gitignore', 'a.txt', 'b.txt']);
      expect(work?.left).toHaveLength(1);
    }
  });

  test('in place of a commit (git replace) is kept', async () => {
    const { git, commit, end, branches, filesOn } = await openGit();
    git('checkout', '-q', '-b', 'other');
    commit('b.txt');
    git('replace', '-f', 'other~1', 'other');
    git('--no-replace-objects', 'checkout', '-q', '-');
    git('branch', '-q', '-D', 'other');

    await end();

    const [branch = ''] = branches();
    expect(branches()).toHaveLength(1);
    expect(branch).toMatch(/^agent\/bd-a1\/1-refs-replace-[0-9a-f]{40}$/);
    expect(filesOn(branch)).toEqual(['.gitignore', 'a.txt', 'b.txt']);
  });

  test('in another worktree, on no branch, is kept', async () => {
    const { root, git, end, branches, filesOn } = await openGit();
    git('worktree', 'add', '-q', '--detach', 'beside');
    commitIn(join(root, 'beside'), 'b.txt', 'b\n');

    await end();

    const kept = branches().filter((name) => name !== 'agent/bd-a1/1');
    expect(kept).toHaveLength(1);
    expect(filesOn(kept[0] ?? '')).toEqual(['.gitignore', 'a.txt', 'b.txt']);
  });

  test('as notes, or as what is no commit, is named', async () => {
    const { root, git, end, branches, write } = await openGit();
    git('notes', 'add', '-m', 'look at this');
    write('b.txt', 'loose\n');
    const blob = git('hash-object', '-w', 'b.txt');
    git('tag', '-a', '-m', 'one', 'inner', blob);
    git('tag', '-a', '-m', 'two', 'outer', 'inner');
    write('b.txt', 'another\n');
    git('update-ref', 'refs/foo/blob', git('hash-object', '-w', 'b.txt'));
    execFileSync('rm', [join(root, 'b.txt')]);

    const { work, notes } = await end();

    expect(branches()).toEqual(['']);
    expect(work?.left?.map(({ ref, reason }) => [ref, reason]).toSorted()).toEqual([
      [expect.stringMatching(/^(?:inner|outer)$/), 'it is no commit'],
      ['refs/foo/blob', 'it is no commit'],
      ['refs/notes/commits', 'notes on commits are not saved'],
    ]);
    expect(notes).toHaveLength(3);
  });

  test('and has in its folder, or began with, is not kept twice', async () => {
    const { git, commit, end, branches } = await openGit();
    git('tag', 'before');
    commit('one.txt');
    git('tag', 'middle');
    git('checkout', '-q', '-b', 'fix/x');
    commit('two.txt');
    git('branch', 'copy');
    git('commit', '-q', '--amend', '-m', 'again');

    const { notes } = await end();

    expect([branches(), notes]).toEqual([['agent/bd-a1/1'], []]);
  });

  test('as a file that other programs trust is named, and the rest is kept', async () => {
    const { git, commit, end, branches, filesOn } = await openGit();
    git('checkout', '-q', '-b', 'fix');
    commit('.mcp.json');
    commit('b.txt');
    git('checkout', '-q', '-');

    const { work } = await end();

    expect(branches()).toEqual(['agent/bd-a1/1-fix']);
    expect(filesOn('agent/bd-a1/1-fix')).toEqual(['.gitignore', 'a.txt', 'b.txt']);
    expect(work?.left).toContainEqual({
      ...{ path: '.mcp.json', ref: 'fix' },
      reason: 'other programs run or trust it, so agents may not change it',
    });
  });

  test('and packed is named: packs of an agent are not read', async () => {
    const { git, commit, end, branches } = await openGit();
    git('checkout', '-q', '-b', 'fix');
    commit('b.txt');
    git('checkout', '-q', '-');
    git('gc', '-q');

    const { work } = await end();

    expect(branches()).toEqual(['']);
    expect(work?.left).toEqual([{ ref: 'fix', reason: 'its objects are packed, or too large' }]);
  });

  test('in a git directory that is a file is named, and the folder is saved', async () => {
    const { git, end, write } = await openGit();
    const dir = git('rev-parse', '--absolute-git-dir');
    execFileSync('rm', ['-r', join(dir, 'refs')]);
    execFileSync('mkfifo', [join(dir, 'refs')]);
    write('b.txt');

    expect((await end()).saved).toMatchObject({ files: 1 });
  });

  test('behind links that lead out of its git directory is not read', async () => {
    const { project, root, git, commit, end } = await openGit();
    git('checkout', '-q', '-b', 'fix');
    commit('b.txt');
    git('checkout', '-q', '-');
    const heads = join(git('rev-parse', '--absolute-git-dir'), 'refs/heads');
    execFileSync('rm', ['-r', heads]);
    symlinkSync(join(project, '.git/refs/heads'), heads);

    expect(await end()).toEqual({ saved: null, work: null, notes: [] });
    expect(existsSync(root)).toBe(false);
  });
});

test('what is in a submodule is named with its size, and the start names the submodule', async () => {
  const project = makeRepository();
  const lib = makeRepository();
  const add = ['submodule', 'add', '-q', lib, 'vendor/lib'];
  gitIn(project, '-c', 'protocol.file.allow=always', ...add);
  gitIn(project, 'commit', '-q', '-m', 'add lib');
  const workspace = await worktreesOf(project, temporaryFolder(), [], { keep: ['vendor/**/*.h'] });
  const { root, notes } = await workspace.open(anAttempt());
  for (const name of ['new.c', 'new.h']) {
    mkdirSync(join(root, 'vendor/lib'), { recursive: true });
    writeFileSync(join(root, 'vendor/lib', name), 'int x;\n');
  }

  await workspace.save(anAttempt(), 'Change it');

  expect(notes).toEqual([
    'vendor/lib is a submodule and empty in your folder; files that you write there are not saved.',
  ]);
  expect((await workspace.workOf(id, 1))?.left).toEqual([
    {
      ...{ path: 'vendor/lib/', bytes: 14 },
      reason: 'it is in a submodule; 1 of its files is in .beads/tasks/task-bd-a1/files/1',
    },
  ]);
});

test('an attempt that changed nothing leaves nothing to say', async () => {
  const { end } = await open();

  expect(await end()).toEqual({ saved: null, work: null, notes: [] });
});
