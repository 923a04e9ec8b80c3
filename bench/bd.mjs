// A list of 5,000 tasks through a fake bd, beside the time that the same two calls of it take by
// themselves.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBdTracker } from '../build/actors/tracker/bd/bd.js';
import { createBdCalls, defaultBdLimits } from '../build/actors/tracker/bd/calls.js';
import { median, report, timed } from './lib.mjs';

const count = Number(process.env.TASKS ?? 5_000);
const runs = Number(process.env.RUNS ?? 9);
const projectRoot = mkdtempSync(join(tmpdir(), 'agent-bench-bd-'));
const folder = join(projectRoot, '.beads');
mkdirSync(folder);
const program = fileURLToPath(new URL('../test/support/fake-bd/fake-bd.mjs', import.meta.url));
const setup = JSON.stringify({
  family: 'A-direct',
  calls: join(projectRoot, 'calls'),
  faults: join(projectRoot, 'faults'),
});
const bdPath = join(projectRoot, 'bd');
writeFileSync(bdPath, `#!/bin/sh\nexec '${process.execPath}' '${program}' '${setup}' "$@"\n`, {
  mode: 0o755,
});

const at = '2026-11-20T10:00:00.000Z';
const issues = Object.fromEntries(
  Array.from({ length: count }, (_, n) => {
    const id = `bd-${n.toString(36).padStart(4, '0')}`;
    const before = `bd-${(n - 1).toString(36).padStart(4, '0')}`;
    const dependencies =
      n % 3 === 2 ? [{ issue_id: id, depends_on_id: before, type: 'blocks', created_at: at }] : [];
    const text = 'What it is about, in a few lines of text. '.repeat(8);
    const issue = {
      id,
      title: `task ${n}`,
      description: text,
      status: 'open',
      priority: 2,
      issue_type: 'task',
    };
    return [
      id,
      { ...issue, created_at: at, updated_at: at, labels: ['role:engineer'], dependencies },
    ];
  }),
);
writeFileSync(join(folder, 'beads.db'), JSON.stringify({ issues }));

const calls = createBdCalls({
  projectRoot,
  bdPath,
  processEnv: process.env,
  limits: defaultBdLimits,
});
const tracker = createBdTracker({ calls, projectRoot, actor: 'agent-server', log: () => {} });
const bare = () => {
  for (const args of [['list', '--all'], ['ready']])
    spawnSync(bdPath, [...args, '--json', '--limit=0'], { cwd: projectRoot, maxBuffer: 2 ** 30 });
};

const [ours, own] = [[], []];
await tracker.list();
for (let run = 0; run < runs; run += 1) {
  own.push(await timed(bare));
  ours.push(await timed(() => tracker.list()));
}
rmSync(projectRoot, { recursive: true });
report(`list of ${count} tasks of bd / bd by itself (p50)`, {
  ours: median(ours),
  limit: median(own),
  ratio: median(ours) / median(own),
  goal: 1.3,
});
