import type { SlotUse } from '../actors/engine/explain.ts';
import type { Counters } from '../actors/store/port.ts';

/** Times in seconds. */
export const metricsDocument = (tally: Counters, load: SlotUse, uptimeSeconds: number) => ({
  tasks_spawned: tally.spawned,
  tasks_completed: tally.completed,
  tasks_failed: tally.failed,
  tasks_cancelled: tally.cancelled,
  tasks_in_progress: load.running,
  queue_depth: load.waiting,
  api_calls_total: tally.callsTotal,
  api_calls_failed: tally.callsFailed,
  average_execution_seconds: tally.executed === 0 ? 0 : tally.executionSeconds / tally.executed,
  input_tokens_total: tally.inputTokens,
  output_tokens_total: tally.outputTokens,
  uptime_seconds: uptimeSeconds,
});
type Name = keyof ReturnType<typeof metricsDocument>;

const described: Readonly<Record<Name, readonly [type: 'counter' | 'gauge', help: string]>> = {
  tasks_spawned: ['counter', 'Attempts whose agent began.'],
  tasks_completed: ['counter', 'Tasks that became complete.'],
  tasks_failed: ['counter', 'Tasks that failed.'],
  tasks_cancelled: ['counter', 'Tasks that were cancelled.'],
  tasks_in_progress: ['gauge', 'Tasks that hold a slot.'],
  queue_depth: ['gauge', 'Tasks that wait for a slot.'],
  api_calls_total: ['counter', 'Calls of the language model.'],
  api_calls_failed: ['counter', 'Calls of the language model that failed.'],
  average_execution_seconds: [
    'gauge',
    'Mean time from start to complete, of tasks that an agent worked on.',
  ],
  input_tokens_total: ['counter', 'Tokens sent to the language model.'],
  output_tokens_total: ['counter', 'Tokens received from the language model.'],
  uptime_seconds: ['gauge', 'Time since the server started.'],
};

export const metricsText = (document: Readonly<Record<Name, number>>): string =>
  (Object.keys(described) as Name[])
    .map((name) => {
      const [type, help] = described[name];
      return `# HELP agent_${name} ${help}\n# TYPE agent_${name} ${type}\nagent_${name} ${document[name]}\n`;
    })
    .join('');
