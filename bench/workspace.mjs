// What it costs to save, show and merge the work of an attempt, and to send it to other servers after
// a step, beside plain git in the same run.
// Usage: npm run bench -- workspace     SIZES=100,5000 and RUNS=5 change what is measured
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { chooseWorkspace } from '../build/actors/workspace/worktrees/select-workspace.js';
import { median, report, timed } from './lib.mjs';

const sizes = (process.env.SIZES ?? '100,5000,50000').split(',').map(Number);
const runs = Number(process.env.RUNS ?? 5);
const saveGoalMs = 60;
const mergeGoalMs = 120;
const loopGoalMs = 50;

const gitWith = (cwd, args, env = process.env) =>
  execFileSync('git', args, { cwd, env, stdio: 'ignore' });
const git = (cwd, ...args) => gitWith(cwd, args);
const fileOf = (at) => join(`d${Math.floor(at / 100)}`, `f${at}.txt`);

const makeProject = (folder, files) => {
  for (let at = 0; at < files; at += 1) {
    if (at % 100 === 0) mkdirSync(join(folder, `d${at / 100}`), { recursive: true });
    writeFileSync(join(folder, fileOf(at)), `file ${at}\n`.repeat(20));
  }
  git(folder, 'init', '-q', '-b', 'main');
  git(folder, 'config', 'user.name', 'x');
  git(folder, 'config', 'user.email', 'x@localhost');
  git(folder, 'config', 'gc.auto', '0');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'all');
};

/** Twenty edited files and a new one. */
const edit = (folder, files, run) => {
  for (let at = run; at < files; at += Math.ceil(files / 20))
    writeFileSync(join(folder, fileOf(at)), `edited ${run}\n`);
  writeFileSync(join(folder, `new${run}.txt`), `new ${run}\n`);
};

const measureOurs = async (root, project, files) => {
  const times = { diff: [], save: [], merge: [], loop: [] };
  const workspace = await chooseWorkspace({
    ...{ mode: 'worktree', projectRoot: project, folder: join(root, 'worktrees'), copies: [] },
    environment: { PATH: process.env.PATH },
  });
  const delay = monitorEventLoopDelay({ resolution: 5 });
  for (let run = 1; run <= runs; run += 1) {
    const attempt = { taskId: `bd-${run}`, attempt: 1, role: 'engineer', options: {} };
    const { root: folder } = await workspace.open(attempt);
    edit(folder, files, run);
    delay.reset();
    delay.enable();
    times.diff.push(await timed(() => workspace.diff(attempt.taskId, 1)));
    times.save.push(await timed(() => workspace.save(attempt, 'x')));
    delay.disable();
    times.loop.push(delay.percentile(99) / 1e6);
    times.merge.push(await timed(() => workspace.merge(attempt.taskId, 1, 'squash', 'x')));
  }
  return times;
};

/**
 * The same by hand: a worktree whose index is warm, `add` and `diff` with an index of its own,
 * `add` and `commit`, a squash.
 */
const measurePlain = async (root, project, files) => {
  const times = { diff: [], save: [], merge: [] };
  for (let run = 1; run <= runs; run += 1) {
    const folder = join(root, `tree${run}`);
    git(project, 'worktree', 'add', '-q', '-b', `b${run}`, folder);
    git(folder, 'status');
    const index = join(project, '.git', 'worktrees', `tree${run}`, 'index');
    const env = { ...process.env, GIT_INDEX_FILE: join(root, 'index') };
    edit(folder, files, run);
    times.diff.push(
      await timed(() => {
        execFileSync('cp', ['-p', index, env.GIT_INDEX_FILE]);
        gitWith(folder, ['add', '-A'], env);
        gitWith(folder, ['diff', '--cached'], env);
      }),
    );
    times.save.push(
      await timed(() => {
        git(folder, 'add', '-A');
        git(folder, 'commit', '-qm', 'x');
      }),
    );
    times.merge.push(
      await timed(() => {
        git(project, 'merge', '-q', '--squash', `b${run}`);
        git(project, 'commit', '-qm', 'x');
      }),
    );
    git(project, 'worktree', 'remove', '--force', folder);
  }
  return times;
};

/** The repository that all servers reach. */
const makeBare = (project, bare) => {
  git(project, 'clone', '-q', '--bare', '--no-hardlinks', project, bare);
  return bare;
};

/** A step's work is sent to other servers, and taken from there. */
const measureTravel = async (root, project, files) => {
  const times = { send: [], take: [] };
  const workspace = await chooseWorkspace({
    ...{ mode: 'worktree', projectRoot: project, folder: join(root, 'travel'), copies: [] },
    environment: { PATH: process.env.PATH },
    repository: {
      address: makeBare(project, join(root, 'work.git')),
      ...{ server: 'one', env: process.env },
    },
  });
  for (let run = 1; run <= runs; run += 1) {
    const attempt = { taskId: `bd-t${run}`, attempt: 1, role: 'engineer', options: {} };
    const { root: folder } = await workspace.open(attempt);
    edit(folder, files, runs + run);
    const keyed = { ...attempt, key: `key ${run}` };
    times.send.push(await timed(() => workspace.travel.keep(keyed, 'act:1:a')));
    times.take.push(await timed(() => workspace.travel.take(attempt, keyed.key)));
  }
  return times;
};

const travelByHand = async (root, project, files) => {
  const times = { send: [], take: [] };
  const bare = makeBare(project, join(root, 'plain.git'));
  for (let run = 1; run <= runs; run += 1) {
    const folder = join(root, `sent${run}`);
    git(project, 'worktree', 'add', '-q', '-b', `t${run}`, folder);
    git(folder, 'status');
    edit(folder, files, runs + run);
    times.send.push(
      await timed(() => {
        git(folder, 'add', '-A');
        git(folder, 'commit', '-qm', 'x');
        git(folder, 'push', '-q', bare, `HEAD:t${run}`);
      }),
    );
    git(project, 'worktree', 'remove', '--force', folder);
    times.take.push(
      await timed(() => {
        git(project, 'fetch', '-q', bare, `t${run}`);
        git(project, 'worktree', 'add', '-q', '--detach', folder, 'FETCH_HEAD');
      }),
    );
    git(project, 'worktree', 'remove', '--force', folder);
  }
  return times;
};

const row = (name, ours, limit, goal) =>
  report(name, {
    ours: median(ours),
    limit: median(limit),
    ratio: median(ours) / median(limit),
    goal,
  });
const within = (name, ours, limit) => report(name, { ours, limit, ratio: ours / limit, goal: 1 });

for (const files of sizes) {
  const root = mkdtempSync(join(tmpdir(), 'agent-bench-workspace-'));
  try {
    const [project, plain] = ['project', 'plain'].map((name) => join(root, name));
    for (const folder of [project, plain]) makeProject(folder, files);
    const limit = await measurePlain(root, plain, files);
    const ours = await measureOurs(root, project, files);
    const byHand = await travelByHand(root, plain, files);
    const travel = await measureTravel(root, project, files);
    const goal = files === 100 ? undefined : 2;
    row(`${files} files: live diff / git add, diff`, ours.diff, limit.diff, goal);
    row(`${files} files: save / git add, commit`, ours.save, limit.save, goal);
    row(`${files} files: a step sent / git add, commit, push`, travel.send, byHand.send);
    row(`${files} files: a folder taken / git fetch, worktree add`, travel.take, byHand.take);
    row(`${files} files: merge / git merge --squash, commit`, ours.merge, limit.merge);
    if (files === 100) within('  save, of 60 ms', median(ours.save), saveGoalMs);
    if (files === 5000) within('  merge, of 120 ms', median(ours.merge), mergeGoalMs);
    within('  event loop meanwhile (p99), of 50 ms', median(ours.loop), loopGoalMs);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
process.exit(0);
