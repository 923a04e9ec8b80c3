// A command in the sandbox beside the same command without it, in the user's own folder: 5,000
// files in 500 folders.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnvironment } from '../build/actors/process/run-command.js';
import { createBubblewrap } from '../build/actors/sandbox/bubblewrap.js';
import { createNoSandbox } from '../build/actors/sandbox/no-sandbox.js';
import { runSandboxed } from '../build/actors/sandbox/run-sandboxed.js';
import { median, report, timed } from './lib.mjs';

const runs = Number(process.env.RUNS ?? 40);
const goalMs = 25;
const sandbox = createBubblewrap({ readPaths: [], network: false });
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
const run = (given) =>
  runSandboxed(given, {
    argv: ['/bin/sh', '-c', 'true'],
    root,
    readable: [],
    env: childEnvironment(process.env),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    headBytes: 100,
    tailBytes: 100,
  });
const [held, free] = [[], []];
for (let n = 0; n < runs; n += 1) {
  free.push(await timed(() => run(createNoSandbox())));
  held.push(await timed(() => run(sandbox)));
}
rmSync(root, { recursive: true });
const more = median(held) - median(free);
report('a command in the sandbox / without it (p50)', {
  ours: median(held),
  limit: median(free),
  ratio: median(held) / median(free),
});
report('  what it costs more, of 25 ms', {
  ours: more,
  limit: goalMs,
  ratio: more / goalMs,
  goal: 1,
});
