import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** The id of a process that has ended. */
const deadPid = (): number => spawnSync('/bin/true').pid;

const untilEmpty = async (folder: string): Promise<void> => {
  while (readdirSync(folder).length > 0) await delay(10);
};

test('locked folders, links and five hundred levels do not prevent the removal of a worktree', {
  tags: ['slow'],
}, async () => {
  const project = makeRepository();
  const state = temporaryFolder();
  const outside = temporaryFolder();
  writeFileSync(join(outside, 'mine'), 'x');
  const workspace = await worktreesOf(project, state);
  const { root } = await workspace.open(anAttempt());
  symlinkSync(outside, join(root, 'link'));
  execFileSync(
    '/bin/sh',
    ['-c', 'i=0; while [ $i -lt 500 ]; do mkdir deep && cd deep; i=$((i+1)); done; : > last'],
    {
      cwd: root,
    },
  );
  mkdirSync(join(root, 'shut', 'inside'), { recursive: true });
  writeFileSync(join(root, 'shut', 'inside', 'file'), 'x');
  chmodSync(join(root, 'shut', 'inside'), 0);
  chmodSync(join(root, 'shut'), 0o100);

  await workspace.save(anAttempt(), 'x');

  expect(existsSync(root)).toBe(false);
  await untilEmpty(join(state, 'removed'));
  expect(readdirSync(outside)).toEqual(['mine']);
});

test('the next server removes what a crash left: folders of ours, and the lock of a branch', async () => {
  const project = makeRepository();
  const state = temporaryFolder();
  const pid = deadPid();
  const leftovers = [join(state, 'uses', `use-${pid}-abc`), join(state, 'removed', 'abc')];
  const alive = join(state, 'uses', `use-${process.ppid}-abc`);
  for (const folder of [...leftovers, alive]) mkdirSync(join(folder, 'git'), { recursive: true });
  writeFileSync(join(project, '.git', 'HEAD.lock'), `agent-server ${pid}`);

  expect(await (await worktreesOf(project, state)).sweep(() => true)).toEqual([]);

  expect(leftovers.map((folder) => existsSync(folder))).toEqual([false, false]);
  expect(existsSync(alive)).toBe(true);
  gitIn(project, 'switch', '--quiet', '-c', 'other');
});

test('a lock of HEAD that is not ours, or whose process runs, stays', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  for (const text of ['', `agent-server ${process.ppid}`]) {
    writeFileSync(join(project, '.git', 'HEAD.lock'), text);
    await workspace.sweep(() => true);
    expect(existsSync(join(project, '.git', 'HEAD.lock'))).toBe(true);
  }
});

test('files that could not be saved are named even when nothing else was changed', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  execFileSync('mkfifo', [join(root, 'pipe')]);

  expect(await workspace.save(anAttempt(), 'x')).toBeNull();
  expect(await workspace.leftOut('bd-a1' as TaskId, 1)).toEqual([
    'pipe was not saved: it is a pipe, socket or device',
  ]);
});
