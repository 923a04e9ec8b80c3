// What it costs to save, show and merge the work of an attempt, against plain git in the same run.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

const dist = new URL('../dist', import.meta.url).pathname;
const { chooseWorkspace } = await import(join(dist, 'actors/workspace/choose.js'));
const sizes = (process.argv[2] ?? '100,5000').split(',').map(Number);
const git = (cwd, ...args) => execFileSync('git', args, { cwd, stdio: 'ignore' });

const makeProject = (folder, files) => {
  for (let at = 0; at < files; at += 1) {
    const inside = join(folder, `d${Math.floor(at / 100)}`);
    if (at % 100 === 0) mkdirSync(inside, { recursive: true });
    writeFileSync(join(inside, `f${at}.txt`), `file ${at}\n`.repeat(20));
  }
  git(folder, 'init', '-q', '-b', 'main');
  git(folder, 'config', 'user.name', 'x');
  git(folder, 'config', 'user.email', 'x@localhost');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'all');
};
const edit = (folder, files) => {
  for (let at = 0; at < files; at += Math.ceil(files / 20))
    writeFileSync(join(folder, `d${Math.floor(at / 100)}`, `f${at}.txt`), `edited ${at}\n`);
};
const timed = async (work) => {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
};
const text = (ours, plain) => `${ours.toFixed(0)} (git ${plain.toFixed(0)}, ${(ours / plain).toFixed(1)}x)`.padEnd(24);

for (const files of sizes) {
  const root = mkdtempSync(join(tmpdir(), 'bench-workspace-'));
  try {
    const [project, plain] = ['project', 'plain'].map((name) => join(root, name));
    for (const folder of [project, plain]) makeProject(folder, files);
    const workspace = await chooseWorkspace({
      ...{ mode: 'worktree', projectRoot: project, folder: join(root, 'worktrees'), copies: [] },
      environment: { PATH: process.env.PATH },
    });
    const best = { live: [], save: [], merge: [], gitLive: [], gitSave: [], gitMerge: [] };
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    for (let n = 1; n <= 3; n += 1) {
      const attempt = { taskId: `bd-${n}`, attempt: 1, role: 'engineer', options: {} };
      const { root: folder } = await workspace.open(attempt);
      edit(folder, files);
      writeFileSync(join(folder, 'new.txt'), `new ${n}\n`);
      delay.reset();
      best.live.push(await timed(() => workspace.diff(attempt.taskId, 1)));
      best.save.push(await timed(() => workspace.save(attempt, 'x')));
      best.merge.push(await timed(() => workspace.merge(attempt.taskId, 1, 'squash', 'x')));
    }
    const p99 = delay.percentile(99) / 1e6;
    for (let n = 1; n <= 3; n += 1) {
      const folder = join(root, `tree${n}`);
      git(plain, 'worktree', 'add', '-q', '-b', `b${n}`, folder);
      edit(folder, files);
      writeFileSync(join(folder, 'new.txt'), `new ${n}\n`);
      best.gitLive.push(await timed(() => (git(folder, 'add', '-A', '-n'), git(folder, 'diff', 'HEAD'))));
      best.gitSave.push(await timed(() => (git(folder, 'add', '-A'), git(folder, 'commit', '-qm', 'x'), git(plain, 'worktree', 'remove', '--force', folder))));
      best.gitMerge.push(await timed(() => git(plain, 'merge', '-q', '--ff-only', `b${n}`)));
    }
    const least = (name) => Math.min(...best[name]);
    console.log(`${files} files`.padEnd(14), 'live', text(least('live'), least('gitLive')), 'save', text(least('save'), least('gitSave')), 'merge', text(least('merge'), least('gitMerge')), `event loop p99 ${p99.toFixed(1)} ms`);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
process.exit(0);
