import type { RunOptions, TaskId } from '../../machines/task.ts';
import type { WorkflowContext, WorkflowTask } from '../../machines/workflow/workflow-context.ts';
import type { TaskService } from '../engine/service/task-service.ts';
import { workflowKey } from '../journal/replay/replay.ts';
import type { TaskView } from '../journal/task-view.ts';
import { maxTurnsOf, type PlannedTask } from './planned-tasks.ts';

export type WorkflowTasks = Pick<TaskService, 'create' | 'list' | 'run' | 'status' | 'cancel'>;

export const tasksOfWorkflow = async (
  service: Pick<TaskService, 'list'>,
  workflowId: string,
): Promise<readonly TaskView[]> => {
  const found: TaskView[] = [];
  let cursor: string | undefined;
  do {
    const page = await service.list({
      label: workflowKey(workflowId),
      limit: 1_000,
      cursor,
    });
    found.push(...page.tasks);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return found;
};

const isThisOne = ({ labels }: TaskView, planned: PlannedTask): boolean => {
  const own = (all: readonly string[]): string =>
    all
      .filter((label) => /^(step|question|round|investigator|phase):/.test(label))
      .sort()
      .join(' ');
  return own(labels) === own(planned.labels);
};

const optionsOf = (context: WorkflowContext, { verifies }: PlannedTask): RunOptions => {
  const maxTurns = maxTurnsOf(context);
  return {
    ...(verifies && context.verify.length > 0 ? { verify: context.verify } : {}),
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(context.model === null ? {} : { model: context.model }),
  };
};

/** Starts a task of a role, as `agent run` does; one that was started stays as it is. */
export const runPlanned = async (
  service: Pick<TaskService, 'run'>,
  context: WorkflowContext,
  planned: PlannedTask,
  taskId: TaskId,
): Promise<void> => {
  if (planned.role === null) return;
  await service.run({
    taskIds: [taskId],
    role: planned.role,
    options: optionsOf(context, planned),
    by: context.by,
  });
};

/**
 * Makes the tasks that do not exist yet, found by their labels, and starts those of roles. Doing it
 * again after a crash makes none twice. Stops between two tasks when the signal is aborted.
 */
export const makeTasks = async (
  service: WorkflowTasks,
  context: WorkflowContext,
  planned: readonly PlannedTask[],
  signal: AbortSignal,
): Promise<readonly WorkflowTask[]> => {
  const existing = await tasksOfWorkflow(service, context.workflowId);
  const made: WorkflowTask[] = [];
  for (const each of planned) {
    signal.throwIfAborted();
    const known = existing.find((task) => isThisOne(task, each));
    const dependencies = [
      ...each.after,
      ...made.filter(({ step }) => each.needs.includes(step)).map(({ taskId }) => taskId),
    ];
    const { title, description, labels, step, copy } = each;
    const { task_id } =
      known ?? (await service.create({ title, description, labels, dependencies }));
    const taskId = task_id as TaskId;
    signal.throwIfAborted();
    if (known === undefined || known.attempt === 0)
      await runPlanned(service, context, each, taskId);
    made.push({ taskId, phase: context.phase, round: context.round, step, copy });
  }
  return made;
};
