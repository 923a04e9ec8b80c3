import type { TaskId } from '../../machines/task.ts';
import { holdingOf, mayContinue } from '../journal/snapshots.ts';
import type { Store } from '../store/port.ts';
import type { Workspace } from '../workspace/port.ts';
import { inParts } from './restore-tasks.ts';
import type { Supervision } from './supervision.ts';
import type { TaskActors } from './task-commands.ts';

/** Tasks in one line of the log. */
const namedAtMost = 20;

export interface TaskStartPorts {
  readonly store: Pick<Store, 'actor' | 'actors' | 'pendingOf' | 'withoutServer'>;
  readonly workspace: Pick<Workspace, 'sweep'>;
  readonly supervisor: Supervision;
  readonly commands: Pick<TaskActors, 'restore' | 'takeUp' | 'dropAll'>;
  /** The machine of an attempt. */
  readonly agent: Parameters<Supervision['start']>[0]['agent'];
  /** This start of the server. */
  readonly node: string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Continues tasks: its own when the server starts, those of another server later. */
export interface TaskStart {
  start(): Promise<void>;
  takeUp(taskIds: readonly string[]): Promise<void>;
}

export const createTaskStart = ({
  store,
  workspace,
  supervisor,
  commands,
  agent,
  node,
  log,
}: TaskStartPorts): TaskStart => {
  /** Runs before any waiting task gets a slot. @returns tasks whose attempt waits for no person */
  const retakeSlots = async (taskIds: readonly TaskId[]): Promise<readonly TaskId[]> => {
    const working: TaskId[] = [];
    for await (const some of inParts(taskIds))
      for (const saved of await store.actors(some)) {
        const { slot, parking } = await holdingOf(store, saved);
        const taskId = saved.taskId as TaskId;
        if (slot !== null) supervisor.send({ type: 'slot.retaken', taskId, ...slot });
        if (slot?.lent === false) working.push(taskId);
        if (parking !== null) supervisor.send({ type: 'backend.parked', parking });
      }
    return working;
  };
  /** Saves changes that could not be saved at the end of their attempts. */
  const sweep = async (): Promise<void> => {
    const isOver = async (taskId: TaskId, attempt: number): Promise<boolean> =>
      !(await mayContinue(store, taskId, attempt));
    for (const work of await workspace.sweep(isOver))
      log('could not clean up after all earlier attempts', { work });
  };
  const restore = async (): Promise<void> => {
    const pending = (await store.pendingOf(node)) as readonly TaskId[];
    await commands.restore(pending, await retakeSlots(pending));
    const left = await store.withoutServer(namedAtMost);
    if (left.length > 0)
      log('no server knows the charts that saved these tasks; they wait for one', { tasks: left });
  };
  let started: Promise<void> = Promise.resolve();
  return {
    start: async (): Promise<void> => {
      started = supervisor.start({ agent, dropTasks: commands.dropAll, restore });
      await started;
      sweep().catch((error: unknown) =>
        log('could not check the folders of earlier attempts', { error }),
      );
    },
    takeUp: async (ids: readonly string[]): Promise<void> => {
      const taskIds = ids as readonly TaskId[];
      try {
        await started;
        await commands.takeUp(taskIds, await retakeSlots(taskIds));
      } catch (error) {
        log('could not continue the tasks of another server', { error, tasks: taskIds });
      }
    },
  };
};
