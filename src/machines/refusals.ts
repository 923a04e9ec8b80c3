import type { SnapshotFrom } from 'xstate';
import type { Question, Response } from './agent-context.ts';
import type { agentMachine } from './agent-machine.ts';
import { type Refusal, refusal } from './errors.ts';
import type { Stamped } from './task.ts';
import type { TaskCommand } from './task-context.ts';
import type { taskMachine } from './task-machine.ts';

type TaskSnapshot = SnapshotFrom<typeof taskMachine>;
type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

const sample = {
  run: { type: 'run', role: 'engineer', options: {}, maxRetries: 0 },
  retry: { type: 'retry', role: null, options: null, maxRetries: 0, reason: null },
  close: { type: 'close', reason: null },
  reopen: { type: 'reopen', reason: null },
  cancel: { type: 'cancel', reason: null },
} as const satisfies { [Type in TaskCommand['type']]: Extract<TaskCommand, { type: Type }> };

/** The commands that a task in this state accepts, asked of the chart itself; and `respond` while its agent has a question. */
export const allowedCommands = (snapshot: TaskSnapshot, isAwaited: boolean): readonly string[] => [
  ...Object.values(sample)
    .filter((command) => snapshot.can({ ...command, at: 0 }))
    .map(({ type }) => type),
  ...(isAwaited ? ['respond'] : []),
];

const nameOf = (value: TaskSnapshot['value'] | undefined): string =>
  typeof value === 'object'
    ? Object.entries(value)
        .map(([key, inner]) => `${key}.${nameOf(inner)}`)
        .join(', ')
    : String(value);
const stateName = ({ value }: TaskSnapshot): string => nameOf(value);

/** Why the chart does not accept a command in this state, or null when it does. */
export const refuses = (
  snapshot: TaskSnapshot,
  agent: AgentSnapshot | null,
  command: Stamped<TaskCommand>,
): Refusal | null => {
  if (snapshot.can(command)) return null;
  const { taskId, attempt } = snapshot.context;
  if (command.type === 'run' && snapshot.hasTag('pending')) {
    const number = snapshot.hasTag('live') ? attempt : attempt + 1;
    return refusal('already_running', { task_id: taskId, attempt: number });
  }
  return refusal('event_not_allowed', {
    task_id: taskId,
    event: command.type,
    state: stateName(snapshot),
    allowed: allowedCommands(snapshot, agent?.hasTag('awaiting') === true),
  });
};

/** What is wrong with an answer that does not fit the question, by field. */
const misfit = ({ inputId, kind }: Question, response: Response): { path: string; problem: string } => {
  if (response.inputId !== inputId) return { path: 'input_id', problem: `the attempt waits for ${inputId}` };
  return kind === 'approval'
    ? { path: 'decision', problem: 'is needed: allow or deny' }
    : { path: 'text', problem: 'is needed: the answer in words' };
};

/** Why an answer to attempt `attempt` is not taken, or null when it is; `agent` is that of the live attempt. */
export const refusesResponse = (
  task: TaskSnapshot,
  agent: AgentSnapshot | null,
  attempt: number,
  response: Stamped<Response>,
): Refusal | null => {
  const { taskId } = task.context;
  if (!task.hasTag('live') || agent === null || agent.context.attempt !== task.context.attempt)
    return refusal('event_not_allowed', {
      task_id: taskId,
      event: 'respond',
      state: stateName(task),
      allowed: allowedCommands(task, false),
    });
  if (attempt !== agent.context.attempt)
    return refusal('stale_attempt', { task_id: taskId, attempt, live_attempt: agent.context.attempt });
  if (agent.can(response)) return null;
  const { question } = agent.context;
  return question === null || !agent.hasTag('awaiting')
    ? refusal('event_not_allowed', {
        task_id: taskId,
        event: 'respond',
        state: `${stateName(task)} (${agent.value})`,
        allowed: allowedCommands(task, false),
      })
    : refusal('invalid_params', { fields: [misfit(question, response)] });
};
