// From execute to the first state of the agent, beside one durable commit on the same disk.
import { cpuMs, median, openSystem, report, timed, until } from './lib.mjs';

const runs = Number(process.env.RUNS ?? 60);
const { system, store, tracker, writes, close } = await openSystem();
const note = {
  taskId: 'bd-bench',
  attempt: 0,
  type: 'log',
  at: 0,
  data: '{"text":"x"}',
  cause: null,
};
const agentStarted = ({ type, data }) =>
  type === 'snapshot' && data.startsWith('{"machine":"agent"');

const [commits, starts, claims, whole, durable, cpus] = [[], [], [], [], [], []];
const { prepare } = tracker;
tracker.prepare = async (change, preparation) => {
  const began = performance.now();
  const answer = await prepare(change, preparation);
  if (change.kind === 'claim') claims.push(performance.now() - began);
  return answer;
};
for (let run = 0; run < runs; run += 1) {
  for (let n = 0; n < 3; n += 1) commits.push(await timed(() => store.commit({ entries: [note] })));
  const { task_id } = await system.service.create({ description: `task ${run}` });
  const started = until(system, task_id, agentStarted);
  const done = until(system, task_id, ({ type }) => type === 'stream_closed');
  const [before, cpuBefore, began] = [writes(), process.cpuUsage(), performance.now()];
  await system.service.execute({ task: task_id, role: 'engineer', options: {} });
  await started;
  starts.push(performance.now() - began);
  cpus.push(cpuMs(cpuBefore));
  durable.push(writes() - before);
  await done;
  whole.push(performance.now() - began);
}
await close();

const commit = median(commits);
report('execute to agent started / one commit (p50)', {
  ours: median(starts),
  limit: commit,
  ratio: median(starts) / commit,
  goal: 8,
});
report('  of which are durable commits', { ours: median(durable), unit: '' });
report('  CPU time', { ours: median(cpus) });
report('  of which the claim in the tracker', {
  ours: median(claims),
  limit: commit,
  ratio: median(claims) / commit,
});
report('execute to complete, null agent / one commit', {
  ours: median(whole),
  limit: commit,
  ratio: median(whole) / commit,
});
