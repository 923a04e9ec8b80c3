// Bytes of the journal for each turn of an attempt: the same for the 10th turn as for the 1,000th.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSystem, report, until } from './lib.mjs';

const file = 'package.json';
const finish = { tool: 'finish', arguments: { status: 'done', summary: 'read' } };
const description = `Read a file.\n${'A sentence of a long description. '.repeat(300)}`;
const bytesOf = (value) =>
  value === null || value === undefined ? 0 : Buffer.byteLength(String(value));

const measure = async (turns) => {
  // Each turn reads another part, so that nobody takes it for a loop.
  const reads = Array.from({ length: turns }, (_, n) => ({
    say: '',
    calls: [{ tool: 'read', arguments: { path: file, offset: n + 1, limit: 1 } }],
  }));
  const opened = await openSystem(
    { maxTurns: turns + 10 },
    { scripts: [{ turns: [...reads, { say: '', calls: [finish] }] }] },
  );
  const { folder, store, db, system, close } = opened;
  writeFileSync(
    join(folder, file),
    Array.from({ length: turns }, (_, n) => `line ${n}\n`).join(''),
  );
  let saved = 0;
  let steps = 0;
  const { commit } = store;
  store.commit = (...changes) => {
    for (const { actor, step } of changes) {
      saved += bytesOf(actor?.snapshot);
      steps += bytesOf(step?.intent) + bytesOf(step?.result);
    }
    return commit.apply(store, changes);
  };
  const { task_id } = await system.service.create({ description });
  const done = until(system, task_id, ({ type }) => type === 'stream_closed');
  await system.service.execute({ task: task_id, role: 'engineer', options: {} });
  await done;
  const { status, usage } = await system.service.status(task_id);
  if (status !== 'complete' || usage.turns !== turns + 1)
    throw new Error(`${status} after ${usage.turns} turns`);
  const rows = await db.ask(db.prepare('select * from journal').all());
  const journal = rows.flatMap(Object.values).reduce((sum, value) => sum + bytesOf(value), 0);
  await close();
  return {
    journal: journal / turns,
    entry: journal / rows.length,
    saved: saved / turns,
    steps: steps / turns,
  };
};

const few = await measure(10);
const many = await measure(Number(process.env.RUNS ?? 1_000));
const compare = (name, key, goal) =>
  report(name, {
    ours: many[key] / 1024,
    limit: few[key] / 1024,
    ratio: many[key] / few[key],
    goal,
    unit: 'KB',
  });
compare('journal of a turn: of 1,000 turns / of 10', 'journal', 1.1);
compare('  for each entry', 'entry');
compare('saved actors, written for each turn', 'saved');
compare('steps, written for each turn', 'steps');
