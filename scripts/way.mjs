// Prints the files of src through which one task goes that calls bash once, in a worktree: those of
// which V8 saw a function run between its creation and its end. `npm run build` first.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openSystem, until } from '../bench/lib.mjs';
import { childEnvironment } from '../build/actors/process/run-command.js';
import { chooseWorkspace } from '../build/actors/workspace/worktrees/select-workspace.js';

const environment = childEnvironment(process.env);
const git = (cwd, ...args) =>
  execFileSync('git', ['-c', 'user.name=way', '-c', 'user.email=way@localhost', ...args], {
    cwd,
    stdio: 'ignore',
  });
const worktrees = mkdtempSync(join(tmpdir(), 'agent-way-'));
const workspace = (projectRoot) => {
  git(projectRoot, 'init', '--quiet', '--initial-branch=main');
  writeFileSync(join(projectRoot, '.gitignore'), 'journal.db*\n');
  git(projectRoot, 'add', '--all');
  git(projectRoot, 'commit', '--quiet', '--message', 'a project');
  return chooseWorkspace({
    mode: 'worktree',
    projectRoot,
    folder: worktrees,
    copies: [],
    environment,
  });
};
const turn = (tool, args) => ({ say: '', calls: [{ tool, arguments: args }] });
const turns = [
  turn('bash', { command: 'echo done > work.txt' }),
  turn('finish', { status: 'done', summary: 'done' }),
];
const { system, close } = await openSystem({ cap: 1 }, { scripts: [{ turns }], workspace });

const inspector = new Session();
inspector.connect();
await inspector.post('Profiler.enable');
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const { task_id } = await system.service.create({ description: 'some work' });
const done = until(system, task_id, ({ type }) => type === 'stream_closed');
await system.service.execute({ task: task_id, role: 'engineer', options: {} });
await done;
const { result } = await inspector.post('Profiler.takePreciseCoverage');
inspector.disconnect();
const { status } = await system.service.status(task_id);
await close();
rmSync(worktrees, { recursive: true });
if (status !== 'complete') throw new Error(`the task is ${status}`);

const built = fileURLToPath(new URL('../build/', import.meta.url));
const files = result
  .filter(({ url, functions }) => {
    const ran = ({ functionName, ranges: [{ count }] }) => functionName !== '' && count > 0;
    return url.startsWith(`file://${built}`) && functions.some(ran);
  })
  .map(({ url }) => relative(built, fileURLToPath(url)))
  .sort();
console.log(`\n--way\n${files.join('\n')}\n${files.length} files for one bash call`);
