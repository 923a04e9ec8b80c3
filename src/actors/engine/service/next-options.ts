import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { Role, RunOptions } from '../../../machines/task.ts';
import type { ExecutePorts } from './execute-task.ts';

/**
 * Options of the attempt after the last one. By the same role, what the request does not name stays:
 * work that failed a verify command does not complete without it.
 */
export const nextOptions = (
  last: Pick<TaskContext, 'role' | 'options'>,
  role: Role,
  given: RunOptions,
  optionsFor: ExecutePorts['optionsFor'],
): RunOptions => optionsFor(last.role === role ? { ...last.options, ...given } : given, role);
