// A command in the sandbox beside the same command without it: in a worktree of its own, and in the
// user's own folder with 5,000 files in 500 folders, whose record is on disk before each command.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnvironment, runCommand } from '../build/actors/process/run-command.js';
import { createBubblewrap } from '../build/actors/sandbox/bubblewrap.js';
import { createNoSandbox } from '../build/actors/sandbox/no-sandbox.js';
import { runSandboxed } from '../build/actors/sandbox/run-sandboxed.js';
import { createSharedFolders } from '../build/actors/sandbox/shared-folder.js';
import { median, report, timed } from './lib.mjs';

const runs = Number(process.env.RUNS ?? 40);
const state = mkdtempSync(join(tmpdir(), 'agent-bench-state-'));
const folders = createSharedFolders({
  quarantine: join(state, 'quarantine'),
  records: join(state, 'commands'),
});
const sandbox = createBubblewrap({ readPaths: [], network: false, folders });
const { ok, detail } = sandbox.check();
if (!ok) {
  console.log(`a command in the sandbox: not measured, ${detail}`);
  process.exit();
}
const root = mkdtempSync(join(tmpdir(), 'agent-bench-sandbox-'));
for (let folder = 0; folder < 500; folder += 1) {
  const path = join(root, `package-${folder % 25}`, `folder-${folder}`);
  mkdirSync(path, { recursive: true });
  for (let file = 0; file < 10; file += 1) writeFileSync(join(path, `file-${file}.ts`), '');
}
for (const name of ['.git', '.beads', '.github', 'package-1/.vscode']) mkdirSync(join(root, name));
const own = mkdtempSync(join(tmpdir(), 'agent-bench-sandbox-'));
mkdirSync(join(own, '.git'));
mkdirSync(join(state, 'git'));
const git = { dir: join(state, 'git'), at: join(own, '.git') };

const run = (given, where) =>
  runSandboxed(given, {
    ...where,
    argv: ['/bin/sh', '-c', 'true'],
    readable: [],
    env: childEnvironment(process.env),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    headBytes: 100,
    tailBytes: 100,
  });
const bare = () =>
  runCommand({
    argv: ['/usr/bin/bwrap', '--ro-bind', '/', '/', '/bin/sh', '-c', 'true'],
    cwd: '/',
    env: {},
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    headBytes: 100,
    tailBytes: 100,
  });
const ways = {
  free: () => run(createNoSandbox(), { root: own }),
  bare,
  own: () => run(sandbox, { root: own, git }),
  shared: () => run(sandbox, { root }),
};
// In turns, so that what else the machine does counts for each alike.
const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let n = 0; n < runs; n += 1)
  for (const [name, way] of Object.entries(ways)) times[name].push(await timed(way));
for (const folder of [root, own, state]) rmSync(folder, { recursive: true });

const free = median(times.free);
const compare = (title, name, goalMs) => {
  const held = median(times[name]);
  report(`a command in ${title} / without a sandbox (p50)`, {
    ours: held,
    limit: free,
    ratio: held / free,
  });
  if (goalMs === undefined) return;
  const more = held - free;
  report(`  what it costs more, of ${goalMs} ms`, {
    ours: more,
    limit: goalMs,
    ratio: more / goalMs,
    goal: 1,
  });
};
compare('a bare bwrap with one bind', 'bare');
compare('its own worktree', 'own', 12);
compare("the user's own folder", 'shared', 25);
