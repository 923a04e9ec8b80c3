import type { SnapshotFrom } from 'xstate';
import { type Refusal, refusal } from './errors.ts';
import type { Stamped } from './task.ts';
import type { TaskCommand } from './task-context.ts';
import type { taskMachine } from './task-machine.ts';

type TaskSnapshot = SnapshotFrom<typeof taskMachine>;

const sample = {
  run: { type: 'run', role: 'engineer', options: {}, maxRetries: 0 },
  retry: { type: 'retry', role: null, options: null, maxRetries: 0 },
  close: { type: 'close', reason: null },
  reopen: { type: 'reopen', reason: null },
  cancel: { type: 'cancel', reason: null },
} as const satisfies { [Type in TaskCommand['type']]: Extract<TaskCommand, { type: Type }> };

/** The commands that a task in this state accepts, asked of the chart itself. */
export const allowedCommands = (snapshot: TaskSnapshot): readonly TaskCommand['type'][] =>
  Object.values(sample)
    .filter((command) => snapshot.can({ ...command, at: 0 }))
    .map(({ type }) => type);

const stateName = (snapshot: TaskSnapshot): string =>
  typeof snapshot.value === 'string' ? snapshot.value : Object.entries(snapshot.value).flat().join('.');

/** Why the chart does not accept a command in this state, or null when it does. */
export const refuses = (snapshot: TaskSnapshot, command: Stamped<TaskCommand>): Refusal | null => {
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
    allowed: allowedCommands(snapshot),
  });
};
