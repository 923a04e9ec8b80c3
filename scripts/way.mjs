// Prints the files of src through which one task goes that calls bash once, in a worktree: those of
// which V8 saw a function run between its creation and its end. `npm run build` first.
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openSystem, openWorktrees, until } from '../bench/lib.mjs';

const worktrees = openWorktrees(0);
const turn = (tool, args) => ({ say: '', calls: [{ tool, arguments: args }] });
const turns = [
  turn('bash', { command: 'echo done > work.txt' }),
  turn('finish', { status: 'done', summary: 'done' }),
];
const { system, close } = await openSystem(
  { cap: 1 },
  { scripts: [{ turns }], workspace: worktrees.workspace },
);

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
worktrees.remove();
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
