// Our own time in a turn: from the end of one answer of the model to the next question, without
// what the tool takes.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTool } from '../build/actors/tools/read.js';
import { cpuMs, median, openSystem, report, timed, until } from './lib.mjs';

const turns = Number(process.env.RUNS ?? 200);
const goalMs = 5;
const file = 'package.json';
const call = { tool: 'read', arguments: { path: file } };
const finish = { tool: 'finish', arguments: { status: 'done', summary: 'read' } };
// Each turn reads another part, so that nobody takes it for a loop.
const reads = Array.from({ length: turns }, (_, n) => ({
  say: '',
  calls: [{ ...call, arguments: { path: file, offset: n + 1, limit: 1 } }],
}));
const [asked, answered] = [[], []];
const watched = (model) => ({
  ...model,
  async *ask(request, signal) {
    asked.push(performance.now());
    for await (const event of model.ask(request, signal)) {
      if (event.type === 'answered') answered.push(performance.now());
      yield event;
    }
  },
});

const { folder, store, system, close } = await openSystem(
  { maxTurns: turns + 10 },
  { scripts: [{ turns: [...reads, { say: '', calls: [finish] }] }], wrap: watched },
);
writeFileSync(join(folder, file), Array.from({ length: turns }, (_, n) => `line ${n}\n`).join(''));
let commitMs = 0;
const { commit } = store;
store.commit = (...changes) => {
  const began = performance.now();
  const entries = commit.apply(store, changes);
  commitMs += performance.now() - began;
  return entries;
};
const { task_id } = await system.service.create({ description: 'a long task' });
const done = until(system, task_id, ({ type }) => type === 'stream_closed');
const before = process.cpuUsage();
await system.service.execute({ task: task_id, role: 'engineer', options: {} });
await done;
const cpu = cpuMs(before) / turns;
const committing = commitMs / turns;

const [commits, tools] = [[], []];
const note = {
  taskId: 'bd-bench',
  attempt: 0,
  type: 'log',
  at: 0,
  data: '{"text":"x"}',
  cause: null,
};
for (let n = 0; n < turns; n += 1) {
  commits.push(await timed(() => store.commit({ entries: [note] })));
  tools.push(
    await timed(() => readTool.run({ path: file, offset: n + 1, limit: 1 }, { root: folder })),
  );
}
const { status } = await system.service.status(task_id);
if (status !== 'complete' || asked.length !== turns + 1)
  throw new Error(`${status} after ${asked.length} turns`);
await close();

const between = median(answered.slice(0, -1).map((at, index) => asked[index + 1] - at));
const own = between - median(tools);
report('between two questions to the model / one commit', {
  ours: between,
  limit: median(commits),
  ratio: between / median(commits),
});
report('  our own of it, without the tool, of 5 ms (p50)', {
  ours: own,
  limit: goalMs,
  ratio: own / goalMs,
  goal: 1,
});
report('  of which durable commits, on average', {
  ours: committing,
  limit: own,
  ratio: committing / own,
});
report('CPU of a whole turn, of 5 ms', { ours: cpu, limit: goalMs, ratio: cpu / goalMs, goal: 1 });
