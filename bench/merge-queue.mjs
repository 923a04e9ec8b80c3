// What the queue of merges finds and costs.
// Usage: npm run bench -- merge-queue
//        node bench/merge-queue.mjs <pairs> [<base> [<command>]]
// `<pairs>` has a folder for each pair, with `a.patch` and `b.patch` and perhaps `expected` (clean,
// conflict or red); `<base>` is the project that they fit (`<pairs>/base`), and `<command>` its test.
// Nothing is fetched. What git and the command say of each pair by hand is the truth beside it.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { childEnvironment } from '../build/actors/process/run-command.js';
import { chooseWorkspace } from '../build/actors/workspace/worktrees/select-workspace.js';
import { median, openSystem, report, timed, until } from './lib.mjs';

const [given, base, command = 'node --test test/'] = process.argv.slice(2);
const pairs = resolve(given ?? join(import.meta.dirname, '..', 'examples', 'pairs'));
const baseFolder = resolve(base ?? join(pairs, 'base'));

const names = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost'];
const git = (cwd, ...args) => execFileSync('git', [...names, ...args], { cwd, encoding: 'utf8' });
const makeProject = (folder, populate) => {
  git(folder, 'init', '--quiet', '--initial-branch=main');
  populate(folder);
  writeFileSync(join(folder, '.git', 'info', 'exclude'), 'journal.db*\n.beads\n');
  git(folder, 'add', '--all');
  git(folder, 'commit', '--quiet', '--message', 'base');
};
const temporary = () => mkdtempSync(join(tmpdir(), 'agent-bench-merge-'));

const finish = {
  say: '',
  calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'x' } }],
};
const bash = (text) => ({
  say: '',
  calls: [{ tool: 'bash', arguments: { command: text, timeout_seconds: 60 } }],
});
/** A system whose tasks, by their titles, run one command each, and are complete. */
const withTasks = async (populate, tasks, landing, work) => {
  const worktrees = temporary();
  const open = await openSystem(
    { landing: { ...defaults, ...landing }, cap: 4 },
    {
      scripts: tasks.map(([title, text]) => ({ title, turns: [bash(text), finish] })),
      workspace: (projectRoot) => {
        makeProject(projectRoot, populate);
        const environment = childEnvironment(process.env);
        const folder = worktrees;
        return chooseWorkspace({
          ...{ mode: 'worktree', projectRoot, folder, copies: [], environment, sandboxed: false },
        });
      },
    },
  );
  try {
    const { service } = open.system;
    const ids = [];
    for (const [title] of tasks) {
      const { task_id: id } = await service.create({ description: title });
      const done = until(open.system, id, ({ type }) => ['completed', 'failed'].includes(type));
      await service.execute({ task: id, role: 'engineer', options: {} });
      await done;
      ids.push(id);
    }
    return await work(open, ids);
  } finally {
    await open.close();
    rmSync(worktrees, { recursive: true, force: true });
  }
};
const defaults = {
  ...{ style: 'squash', verify: [], timeoutMs: 120_000, maxBatch: 5, maxRounds: 2 },
  ...{ onConflict: 'ask', onRed: 'ask', radar: 'off', regenerate: {}, sign: false },
};

/** clean, conflict or red, by git and the command alone; null: a side does not pass by itself. */
const byHand = (one, other) => {
  const folder = temporary();
  const passes = () => spawnSync('/bin/sh', ['-c', command], { cwd: folder }).status === 0;
  try {
    makeProject(folder, (to) => cpSync(baseFolder, to, { recursive: true }));
    for (const [branch, patch] of [
      ['a', one],
      ['b', other],
    ]) {
      git(folder, 'checkout', '--quiet', '-b', branch, 'main');
      git(folder, 'apply', '--index', patch);
      git(folder, 'commit', '--quiet', '--message', branch);
      if (!passes()) return null;
    }
    const { status } = spawnSync('git', [...names, 'merge', '-q', '--no-edit', 'a'], {
      cwd: folder,
    });
    if (status !== 0) return 'conflict';
    return passes() ? 'clean' : 'red';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const kindOf = ({ landed, refused }) => {
  if (landed.length === 2) return 'clean';
  return refused[0]?.code === 'verify_failed' ? 'red' : 'conflict';
};

const tryPairs = async () => {
  const tally = { pairs: 0, conflicts: 0, red: 0, 'false alarms': 0, missed: 0, 'not a pair': 0 };
  for (const name of readdirSync(pairs).sort()) {
    const [one, other] = ['a.patch', 'b.patch'].map((file) => join(pairs, name, file));
    if (!existsSync(one) || !existsSync(other)) continue;
    const truth = byHand(one, other);
    const file = join(pairs, name, 'expected');
    const expected = existsSync(file) ? readFileSync(file, 'utf8').trim() : truth;
    if (truth === null) {
      tally['not a pair'] += 1;
      continue;
    }
    const tasks = [
      ['a', `git apply ${one}`],
      ['b', `git apply ${other}`],
    ];
    const populate = (to) => cpSync(baseFolder, to, { recursive: true });
    const found = await withTasks(populate, tasks, { verify: [command] }, async ({ system }) =>
      kindOf(await system.service.mergeMany({ taskIds: [], all: true })),
    );
    tally.pairs += 1;
    if (found === 'conflict') tally.conflicts += 1;
    if (found === 'red') tally.red += 1;
    if (truth === 'clean' && found !== 'clean') tally['false alarms'] += 1;
    if ((truth !== 'clean' && found === 'clean') || truth !== expected) tally.missed += 1;
    console.log(`  ${name.padEnd(24)} ${found.padEnd(9)} by hand: ${truth}`);
  }
  console.log(
    Object.entries(tally)
      .map(([what, count]) => `${what} ${count}`)
      .join(', '),
  );
  if (tally['false alarms'] + tally.missed > 0) process.exitCode = 1;
};

/** A test that takes down which trees it was run on, and how often. */
const counting = (log, more = 'true') =>
  `find . -path ./.git -prune -o -type f -print | sort | xargs cat | cksum >> ${log}; ${more}`;
const linesIn = (log) => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);

const measureQueue = async () => {
  const log = join(temporary(), 'log');
  const populate = (to) => writeFileSync(join(to, 'file'), 'x\n');
  const tasks = Array.from({ length: 10 }, (_, n) => [`task ${n}`, `echo ${n} > file-${n}`]);
  await withTasks(populate, tasks, { verify: [counting(log)] }, async ({ system }) => {
    const { landed } = await system.service.mergeMany({ taskIds: [], all: true });
    report('ten tasks that fit, batches of 5: runs', {
      ...{ ours: linesIn(log).length, limit: 2, unit: 'runs', goal: 1 },
      ratio: landed.length === 10 ? linesIn(log).length / 2 : Number.NaN,
    });
  });
  rmSync(log);
  await withTasks(
    populate,
    tasks,
    { verify: [counting(log, '[ ! -e file-3 ]')] },
    async ({ system }) => {
      const { landed } = await system.service.mergeMany({ taskIds: [], all: true });
      const trees = new Set(linesIn(log)).size;
      report('the same with a culprit: distinct trees', {
        ...{ ours: trees, limit: 6, unit: 'trees', goal: 1 },
        ratio: landed.length === 9 ? trees / 6 : Number.NaN,
      });
    },
  );
};

/** A tree that passed before, beside a merge that tests nothing. */
const measureLanding = async () => {
  const runs = 9;
  const tasks = Array.from({ length: 2 * runs }, (_, n) => [`task ${n}`, `echo ${n} > file-${n}`]);
  const populate = (to) => writeFileSync(join(to, 'file'), 'x\n');
  await withTasks(populate, tasks, { verify: ['true'] }, async ({ system, folder }, ids) => {
    const [tested, untested] = [[], []];
    for (const [at, taskId] of ids.entries()) {
      if (at % 2 === 0) {
        untested.push(await timed(() => system.service.merge({ taskId, verify: false })));
        continue;
      }
      // A file in the way stops it after its test: the second merge lands the tree that passed.
      const inTheWay = join(folder, `file-${at}`);
      writeFileSync(inTheWay, 'of a person\n');
      await system.service.merge({ taskId });
      rmSync(inTheWay);
      tested.push(await timed(() => system.service.merge({ taskId })));
    }
    const [ours, limit] = [median(tested), median(untested)];
    report('land a tree that passed / untested', { ours, limit, ratio: ours / limit, goal: 1.3 });
  });
};

/** Fifty branches of which all, or one, are another than before. */
const measureRadar = async () => {
  const [project, folder] = [temporary(), temporary()];
  makeProject(project, (to) => {
    for (let n = 0; n < 1_000; n += 1) writeFileSync(join(to, `f${n}`), `line ${n}\n`.repeat(20));
  });
  const workspace = await chooseWorkspace({
    ...{ mode: 'worktree', projectRoot: project, folder, copies: [], sandboxed: false },
    environment: childEnvironment(process.env),
  });
  const attempts = [];
  for (let n = 0; n < 50; n += 1) {
    const attempt = { taskId: `bd-${n}`, attempt: 1, role: 'engineer', options: {} };
    const { root } = await workspace.open(attempt);
    attempts.push({ attempt, root });
  }
  const edit = ({ root }, n, run) => {
    for (let at = 0; at < 20; at += 1)
      writeFileSync(join(root, `f${n * 10 + at}`), `${n} ${run}\n`);
  };
  const { signal } = new AbortController();
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const [all, one] = [[], []];
  delay.enable();
  for (let run = 0; run < 3; run += 1) {
    for (const [n, each] of attempts.entries()) edit(each, n, run);
    const changed = attempts.map(({ attempt }) => attempt);
    all.push(await timed(() => workspace.radar(changed, [], signal)));
    edit(attempts[7], 7, run + 10);
    one.push(await timed(() => workspace.radar([attempts[7].attempt], [], signal)));
  }
  delay.disable();
  const loop = delay.percentile(99) / 1e6;
  const row = (ours, limit) => ({ ours, limit, ratio: ours / limit, goal: 1 });
  report('radar, 50 branches, one changed / 1 s', row(median(one), 1_000));
  report('radar, 50 branches, all changed / 1 s', row(median(all), 1_000));
  report('  its event loop delay, p99 / 50 ms', row(loop, 50));
  for (const path of [project, folder]) rmSync(path, { recursive: true, force: true });
};

await tryPairs();
if (given === undefined) {
  await measureQueue();
  await measureLanding();
  await measureRadar();
}
