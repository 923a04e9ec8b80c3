// Three agents on one repository, each in a worktree of its own, beside one alone: the same
// scripted work, which waits as real work does, for the model and for commands.
import { median, openSystem, openWorktrees, report, timed, until } from './lib.mjs';

const rounds = Number(process.env.RUNS ?? 3);
const together = 3;
const turnMs = 500;

const turn = (tool, args) => ({ say: '', calls: [{ tool, arguments: args }] });
const turns = [
  turn('bash', { command: 'sleep 1' }),
  turn('write', { path: 'work.txt', content: 'done\n' }),
  turn('bash', { command: 'sleep 1; cat work.txt' }),
  turn('finish', { status: 'done', summary: 'done' }),
];
const worktrees = openWorktrees(200);

const { system, close } = await openSystem(
  { cap: together, maxTurns: 10 },
  { scripts: [{ turns }], turnMs, workspace: worktrees.workspace },
);
const run = async () => {
  const { task_id } = await system.service.create({ description: 'some work' });
  const done = until(system, task_id, ({ type }) => type === 'stream_closed');
  await system.service.execute({ task: task_id, role: 'engineer', options: {} });
  await done;
  const { status } = await system.service.status(task_id);
  if (status !== 'complete') throw new Error(`a task of the bench is ${status}`);
};
const [alone, atOnce] = [[], []];
for (let round = 0; round < rounds; round += 1) {
  alone.push(await timed(run));
  atOnce.push(await timed(() => Promise.all(Array.from({ length: together }, run))));
}
await close();
worktrees.remove();
report('three agents on one repository / one alone', {
  ours: median(atOnce),
  limit: median(alone),
  ratio: median(atOnce) / median(alone),
  goal: 1.25,
});
