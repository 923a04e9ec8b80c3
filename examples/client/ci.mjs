// A job of a CI server: runs every open task of the project that has a role, waits, writes a summary,
// and fails when one did not complete, or none could be started. `ci.yml` shows it as a GitHub
// Actions job.
//
//   node ci.mjs [minutes]
import { appendFileSync } from 'node:fs';
import { openProject } from 'agent-task-server/client/node';

const minutes = Number(process.argv[2] ?? 60);
const server = await openProject('.');
const { accepted, skipped } = await server.call('run', {});

/** Nobody answers a question here: such a task counts as failed. */
const resultOf = async ({ task_id }) => {
  const signal = AbortSignal.timeout(minutes * 60_000);
  const task = await server.wait(task_id, { signal }).catch(async (error) => {
    if (!signal.aborted) throw error;
    return server.call('cancel', { task_id, reason: `not done after ${minutes} minutes` });
  });
  const why = task.awaiting?.question ?? task.error?.message ?? '';
  return { task, why: task.status === 'complete' ? '' : why };
};

const results = await Promise.all(accepted.map(resultOf));
const cost = results.reduce((sum, { task }) => sum + (task.usage.cost_usd ?? 0), 0);
const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const rows = [
  ...results.map(({ task, why }) => [task.task_id, cell(task.title), task.status, cell(why)]),
  ...skipped.map(({ task_id, reason }) => [task_id, '', 'skipped', cell(reason)]),
];
const summary = [
  '| task | title | status | why |',
  '| --- | --- | --- | --- |',
  ...rows.map((row) => `| ${row.join(' | ')} |`),
  '',
  `${results.length} ${results.length === 1 ? 'task' : 'tasks'}, $${cost.toFixed(2)}`,
  '',
].join('\n');

console.log(summary);
const file = process.env.GITHUB_STEP_SUMMARY;
if (file !== undefined) appendFileSync(file, summary);
const isAnyStarted = results.length > 0 || skipped.length === 0;
process.exitCode = isAnyStarted && results.every(({ task }) => task.status === 'complete') ? 0 : 1;
