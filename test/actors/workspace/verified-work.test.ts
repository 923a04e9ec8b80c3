import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Workspace } from '../../../src/actors/workspace/port.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const opened = async () => {
  const project = makeRepository();
  const state = temporaryFolder();
  const workspace = await worktreesOf(project, state);
  const { root } = await workspace.open(anAttempt());
  const put = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const savedBy = async (by: Workspace) => {
    const work = await by.save(anAttempt(), 'Work');
    if (work === null) return null;
    const names = gitIn(project, 'diff', '--name-only', work.base, work.commit);
    const read = (path: string) => gitIn(project, 'show', `${work.commit}:${path}`);
    return { paths: names.split('\n').filter(Boolean), read };
  };
  return { project, state, workspace, root, put, savedBy };
};

test('changes of a verification are no part of the work: files written, changed and removed', async () => {
  const { workspace, root, put, savedBy } = await opened();
  put('mine.txt', 'by the agent\n');
  put('both.txt', 'by the agent\n');

  await workspace.asCheck(anAttempt(), async () => {
    put('coverage/a.json', '{}');
    put('both.txt', 'by the verification\n');
    rmSync(join(root, 'mine.txt'));
  });
  const saved = await savedBy(workspace);

  expect(saved?.paths).toEqual(['both.txt', 'mine.txt']);
  expect(saved?.read('both.txt')).toContain('by the agent');
});

test('an attempt of which only the verification changed something left no work', async () => {
  const { workspace, put, savedBy } = await opened();

  await workspace.asCheck(anAttempt(), async () => put('coverage/a.json', '{}'));

  expect(await savedBy(workspace)).toBeNull();
});

test('in a later round, only what the agent changed itself becomes its own', {
  tags: ['slow'],
}, async () => {
  const { workspace, put, savedBy } = await opened();
  put('mine.txt', 'one\n');
  await workspace.asCheck(anAttempt(), async () => {
    put('coverage/a.json', '{}');
    put('kept.snap', 'by the verification\n');
  });
  put('mine.txt', 'two\n');
  put('kept.snap', 'by the agent\n');
  const live = await workspace.diff(anAttempt().taskId, 1);
  await workspace.asCheck(anAttempt(), async () => put('coverage/a.json', '{ "again": true }'));

  const saved = await savedBy(workspace);

  expect(live?.patch).not.toContain('coverage');
  expect(saved?.paths).toEqual(['kept.snap', 'mine.txt']);
  expect(saved?.read('mine.txt')).toContain('two');
  expect(saved?.read('kept.snap')).toContain('by the agent');
});

test('a verification that a crash ends leaves nothing, also when it is run again', async () => {
  const { project, state, workspace, put, savedBy } = await opened();
  put('mine.txt', 'one\n');
  const crash = workspace.asCheck(anAttempt(), async () => {
    put('coverage/half.json', '{');
    throw new Error('killed');
  });
  await expect(crash).rejects.toThrow('killed');
  const next = await worktreesOf(project, state);
  const during = await next.diff(anAttempt().taskId, 1);
  await next.asCheck(anAttempt(), async () => put('coverage/a.json', '{}'));

  const saved = await savedBy(next);

  expect(during?.patch).not.toContain('coverage');
  expect(saved?.paths).toEqual(['mine.txt']);
});

test('a file of the agent stays where the verification had a folder or a file', async () => {
  const { workspace, root, put, savedBy } = await opened();
  put('one', 'a file\n');
  put('two/inside', 'a file\n');
  await workspace.asCheck(anAttempt(), async () => {
    rmSync(join(root, 'one'));
    put('one/report', 'x');
    rmSync(join(root, 'two'), { recursive: true });
    put('two', 'x');
  });
  put('one/added', 'by the agent\n');
  put('two', 'by the agent\n');

  expect((await savedBy(workspace))?.paths).toEqual(['one/added', 'two']);
});

test('when the noted objects are gone, the folder is saved as it is', {
  tags: ['slow'],
}, async () => {
  const { project, workspace, put, savedBy } = await opened();
  put('mine.txt', 'one\n');
  await workspace.asCheck(anAttempt(), async () => put('coverage/a.json', '{}'));
  gitIn(project, 'gc', '--quiet', '--prune=now');

  expect((await savedBy(workspace))?.paths).toEqual(['coverage/a.json', 'mine.txt']);
});

test('without git, too, what a verification writes is no part of the work', {
  tags: ['slow'],
}, async () => {
  const project = temporaryFolder();
  writeFileSync(join(project, 'a.txt'), 'a\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'mine.txt'), 'one\n');
  await workspace.asCheck(anAttempt(), async () => writeFileSync(join(root, 'report.xml'), 'x'));

  await workspace.save(anAttempt(), 'Work');
  await landAlone(workspace, anAttempt().taskId, 1, 'ff', 'Work');

  expect(readFileSync(join(project, 'mine.txt'), 'utf8')).toBe('one\n');
  expect(existsSync(join(project, 'report.xml'))).toBe(false);
});
