import { parseTaskId, type TaskId } from '../../machines/task.ts';
import type { WorkflowContext, WorkflowTask } from '../../machines/workflow-context.ts';
import type { TaskService } from '../engine/task-service.ts';
import type { StepEvidence } from '../gates/evidence.ts';
import type { WorkFiles, Workspace } from '../workspace/port.ts';
import type { KeptReports } from './kept-reports.ts';
import { fillIn, latestTasks } from './planned-tasks.ts';

export interface EvidencePorts {
  readonly service: Pick<TaskService, 'status'>;
  readonly workspace: Pick<Workspace, 'inspect'>;
  readonly reports: Pick<KeptReports, 'read'>;
}

/** An attempt without a commit of its own has no files that can be looked at. */
const noFiles: WorkFiles = { changed: null, list: async () => [], read: async () => null };

type Earlier = readonly { readonly taskId: TaskId; readonly attempt: number }[];

/** The attempts at the same work in the rounds before, from which this round goes on. */
const earlierRounds = async (
  { service }: EvidencePorts,
  { tasks }: WorkflowContext,
  { step, copy, round }: WorkflowTask,
): Promise<Earlier> => {
  const before = tasks.filter(
    (each) => each.step === step && each.copy === copy && each.round < round,
  );
  return Promise.all(
    before.map(async ({ taskId }) => ({
      taskId,
      attempt: (await service.status(taskId)).attempt,
    })),
  );
};

/** Files that are read anew for each question, so no repository stays open. */
const filesOfAttempt = async (
  { workspace }: EvidencePorts,
  taskId: string,
  attempt: number,
  earlier: Earlier,
): Promise<WorkFiles> => {
  const id = parseTaskId(taskId);
  const inspect = async <Result>(read: (files: WorkFiles) => Promise<Result>) =>
    id === null ? null : workspace.inspect(id, attempt, read, earlier);
  const changed = await inspect(async (files) => files.changed);
  if (changed === null) return noFiles;
  return {
    changed,
    list: async (path) => (await inspect((files) => files.list(path))) ?? [],
    read: async (path, bytes) => inspect((files) => files.read(path, bytes)),
  };
};

/** Reads the evidence that the latest tasks of a step left; empty when the step was not done. */
export const evidenceOf =
  (ports: EvidencePorts, context: WorkflowContext) =>
  async (step: string): Promise<readonly StepEvidence[]> => {
    const { leaves = [], verify: isVerified = false } =
      context.definition.phases.flatMap(({ steps }) => steps).find(({ id }) => id === step) ?? {};
    const found: StepEvidence[] = [];
    for (const task of latestTasks(context, step)) {
      const { taskId, copy } = task;
      const { status, attempt, result } = await ports.service.status(taskId);
      if (status !== 'complete') continue;
      found.push({
        ...{ step, taskId, results: result ?? '' },
        isVerified: isVerified && context.verify.length > 0,
        leaves: leaves.map((path) => fillIn(context, path, copy)),
        files: await filesOfAttempt(
          ports,
          taskId,
          attempt,
          await earlierRounds(ports, context, task),
        ),
        report: (path) => ports.reports.read(taskId, attempt, path),
      });
    }
    return found;
  };
