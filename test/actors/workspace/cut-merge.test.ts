import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { mountSmallDisk } from '../../disk/support/small-disk.ts';
import { gitIn, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { processesWith } from '../../support/processes.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** Interrupted merges: a killed process, a killed git, a full disk. */

const files = 400;
const nameOf = (number: number): string => `f/${number % 50}/${number}.txt`;
const task = 'bd-a1' as TaskId;
const root = new URL('../../../', import.meta.url).pathname;

const fill = (folder: string, text: string, from: number, to: number): void => {
  for (let number = from; number < to; number += 1) {
    mkdirSync(join(folder, 'f', String(number % 50)), { recursive: true });
    writeFileSync(join(folder, nameOf(number)), `${text} ${number}\n`.repeat(20));
  }
};

let template: { readonly project: string; readonly state: string };
beforeAll(async () => {
  const folders = realpathSync(mkdtempSync(join(tmpdir(), 'agent-test-')));
  const [project, state] = [join(folders, 'project'), join(folders, 'state')];
  for (const each of [project, state]) mkdirSync(each);
  gitIn(project, 'init', '--quiet', '--initial-branch=main');
  fill(project, 'old', 0, files);
  gitIn(project, 'add', '-A');
  gitIn(
    project,
    '-c',
    'user.name=Amy',
    '-c',
    'user.email=amy@localhost',
    'commit',
    '--quiet',
    '-m',
    'many files',
  );
  const workspace = await worktreesOf(project, state);
  const attempt = anAttempt(1, task);
  const { root: folder } = await workspace.open(attempt);
  fill(folder, 'new', 0, files - 100);
  for (let number = files - 100; number < files - 80; number += 1)
    rmSync(join(folder, nameOf(number)));
  fill(folder, 'new', files, files + 100);
  // A name that reads like a refusal of git.
  writeFileSync(join(folder, 'f', "x\nerror: Updating 'a.txt' y"), 'x'.repeat(10_000));
  await workspace.save(attempt, 'Change it');
  template = { project, state };
  return () => rmSync(folders, { recursive: true, force: true });
});

/** A project, and saved work that changes most of its files, removes some and adds some. */
const projectWithWork = (project = temporaryFolder(), state = temporaryFolder()) => {
  execFileSync('cp', ['-a', `${template.project}/.`, project]);
  // Not what this process keeps for some seconds, and removes.
  cpSync(template.state, state, {
    recursive: true,
    filter: (path) => !/\/(uses|removed)/.test(path),
  });
  gitIn(project, 'status');
  return { project, state, head: gitIn(project, 'rev-parse', 'HEAD') };
};

/** Merges in a process of its own. */
const mergeApart = (project: string, state: string) => {
  const script = `
    const { landAlone } = await import('${root}test/support/land-alone.mjs');
    const { chooseWorkspace } = await import('${root}dist/actors/workspace/worktrees/select-workspace.js');
    const workspace = await chooseWorkspace({ mode: 'worktree', projectRoot: '${project}', folder: '${state}', copies: [],
      environment: process.env, sandboxed: false });
    console.log(JSON.stringify(await landAlone(workspace, '${task}', 1, 'squash', 'Change it')));
  `;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
};

const childrenOf = (pid: number): readonly number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );

const killAll = (pids: readonly number[]): void => {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
};

/** The changed file that git comes to at about this part of its way. */
const fileAt = (part: number): string => nameOf(Math.floor(50 * part));

/**
 * Starts a merge whose git stops at a file: it waits for somebody to write to the named pipe that
 * is in the place of the file's object. What comes before the file is changed then, and the rest is
 * not. The object is put back for whoever comes next.
 */
const mergeUntil = async (project: string, state: string, file: string) => {
  const oid = gitIn(project, 'rev-parse', `agent/${task}/1:${file}`);
  const object = join(project, '.git', 'objects', oid.slice(0, 2), oid.slice(2));
  const aside = join(temporaryFolder(), 'object');
  renameSync(object, aside);
  execFileSync('mkfifo', [object]);
  const child = mergeApart(project, state);
  onTestFinished(() => void child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  // Git removes the old file before it reads the object of the new one.
  const isOld = () =>
    existsSync(join(project, file)) && readFileSync(join(project, file), 'utf8') !== '';
  await expect.poll(isOld).toBe(false);
  const gits = childrenOf(pid);
  expect(gits).toHaveLength(1);
  onTestFinished(() => killAll(gits));
  renameSync(aside, object);
  return { child, pid, gits };
};

const isWhole = (project: string, text: string): boolean =>
  [0, 25, 49].every((number) =>
    readFileSync(join(project, nameOf(number)), 'utf8').startsWith(text),
  ) &&
  existsSync(join(project, nameOf(files + 1))) === (text === 'new') &&
  existsSync(join(project, nameOf(files - 90))) === (text === 'old');

test.each([
  ['the server and git', true, 0.1],
  ['the server and git, later', true, 0.8],
  ['the server, and git goes on', false, 0.2],
])(
  'after kill -9 during a merge the next server leaves all of it or nothing: %s',
  { tags: ['slow'] },
  async (_, both, part) => {
    const { project, state, head } = projectWithWork();
    const { child, pid, gits } = await mergeUntil(project, state, fileAt(part));
    // As a git leaves it that is killed while it writes.
    truncateSync(join(project, nameOf(0)), 30);
    killAll(both ? [pid, ...gits] : [pid]);
    await once(child, 'exit');
    writeFileSync(join(project, 'mine.txt'), 'made after the crash\n');

    const next = await worktreesOf(project, state);
    expect(await next.sweep(() => true)).toEqual([]);

    expect(processesWith(new RegExp(`\0GIT_INDEX_FILE=${state}/`))).toEqual([]);
    expect(gitIn(project, 'rev-parse', 'HEAD')).toBe(head);
    expect(gitIn(project, 'status', '--porcelain')).toBe('?? mine.txt');
    expect(isWhole(project, 'old')).toBe(true);
    expect(existsSync(join(state, 'moving'))).toBe(false);

    expect(await landAlone(next, task, 1, 'squash', 'Change it')).toMatchObject({
      status: 'merged',
    });
    expect(gitIn(project, 'status', '--porcelain')).toBe('?? mine.txt');
    expect(isWhole(project, 'new')).toBe(true);
  },
);

test('a file that the user changed after the crash stays, and is named', {
  tags: ['slow'],
}, async () => {
  const { project, state } = projectWithWork();
  const { child, pid, gits } = await mergeUntil(project, state, fileAt(0.5));
  killAll([pid, ...gits]);
  await once(child, 'exit');
  writeFileSync(join(project, nameOf(0)), 'mine\n');

  const next = await worktreesOf(project, state);
  const told = await landAlone(next, task, 1, 'squash', 'Change it');

  expect(told).toMatchObject({
    status: 'conflict',
    why: expect.stringContaining(`files that you changed since: ${nameOf(0)}; check them`),
  });
  expect(readFileSync(join(project, nameOf(0)), 'utf8')).toBe('mine\n');
  expect(gitIn(project, 'status', '--porcelain')).toBe(` M ${nameOf(0)}`);
});

test('a merge whose git is killed leaves nothing behind', { tags: ['slow'] }, async () => {
  const { project, state } = projectWithWork();
  const { child, gits } = await mergeUntil(project, state, fileAt(0.3));
  const printed = once(child.stdout, 'data');
  killAll(gits);

  expect(JSON.parse(String((await printed)[0]))).toMatchObject({
    status: 'conflict',
    why: 'git did not merge',
  });
  expect(gitIn(project, 'status', '--porcelain')).toBe('');
  expect(isWhole(project, 'old')).toBe(true);
});

test('a merge on a full disk leaves nothing behind, and succeeds when there is room', {
  tags: ['slow', 'root'],
}, async (context) => {
  const project = temporaryFolder();
  const disk = mountSmallDisk(join(project, 'f'), '12m', async () => {});
  if (disk === null) return context.skip('needs the right to mount a small file system');
  const { state } = projectWithWork(project);
  const workspace = await worktreesOf(project, state);
  disk.fill();

  const refused = await landAlone(workspace, task, 1, 'squash', 'Change it');
  disk.empty();
  const before = [gitIn(project, 'status', '--porcelain'), isWhole(project, 'old')];

  expect(refused).toMatchObject({ status: 'conflict' });
  expect(before).toEqual(['', true]);
  expect(await landAlone(workspace, task, 1, 'squash', 'Change it')).toMatchObject({
    status: 'merged',
  });
  expect([gitIn(project, 'status', '--porcelain'), isWhole(project, 'new')]).toEqual(['', true]);
});

test('an index that could not be written after the branch moved is written before the next merge', async () => {
  const { project, state } = projectWithWork();
  mkdirSync(join(project, '.git', 'index.agent-server', 'in-the-way'), { recursive: true });
  const workspace = await worktreesOf(project, state);

  expect(await landAlone(workspace, task, 1, 'squash', 'Change it')).toMatchObject({
    status: 'merged',
  });
  expect(isWhole(project, 'new')).toBe(true);
  rmSync(join(project, '.git', 'index.agent-server'), { recursive: true });

  expect(await workspace.sweep(() => true)).toEqual([]);
  expect(gitIn(project, 'status', '--porcelain')).toBe('');
});

test('a merge that could not be undone at once is undone when there is room', {
  tags: ['slow', 'root'],
}, async (context) => {
  const state = temporaryFolder();
  const disk = mountSmallDisk(state, '20m', async () => {});
  if (disk === null) return context.skip('needs the right to mount a small file system');
  const { project } = projectWithWork(temporaryFolder(), state);
  const { child, gits } = await mergeUntil(project, state, fileAt(0.3));
  const printed = once(child.stdout, 'data');
  disk.fill();
  killAll(gits);
  const first = JSON.parse(String((await printed)[0]));
  await once(child, 'exit');
  disk.empty();

  const next = await worktreesOf(project, state);
  const told = await next.sweep(() => true);

  expect(first).toMatchObject({
    status: 'conflict',
    why: expect.stringContaining('has part of the work'),
  });
  expect(told).toEqual([]);
  expect([gitIn(project, 'status', '--porcelain'), isWhole(project, 'old')]).toEqual(['', true]);
});
