import type { TaskId } from '../../../machines/task.ts';
import { canRead } from '../../journal/chart-versions.ts';
import { holdingOf, mayContinue } from '../../journal/snapshots.ts';
import type { Store } from '../../store/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { Supervision } from '../slots/supervision.ts';
import { inParts } from './restore-tasks.ts';
import type { TaskActors } from './task-commands.ts';

/** Tasks in one line of the log. */
const namedAtMost = 20;

export interface TaskStartPorts {
  readonly store: Pick<Store, 'actor' | 'actors' | 'pendingOf' | 'withoutServer'>;
  readonly workspace: Pick<Workspace, 'sweep'>;
  readonly supervisor: Supervision;
  readonly commands: Pick<TaskActors, 'restore' | 'takeUp' | 'dropAll' | 'missingOf' | 'failing'>;
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
  /**
   * Takes up what the store says that this server has, and it has not loaded: the answer to a take may
   * have been lost, or the store was away right after it. @throws StoreError
   */
  takeUpMissing(): Promise<void>;
  /** Pending tasks of this server that are not loaded, as far as it knows. */
  notLoaded(): readonly string[];
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
    const left = (await store.withoutServer(namedAtMost)).filter((saved) => !canRead(saved));
    if (left.length > 0)
      log('no server knows the charts that saved these tasks; they wait for one', { tasks: left });
  };
  let started: Promise<void> = Promise.resolve();
  /** As the last look found them. */
  let missing: readonly TaskId[] = [];
  const takeUp: TaskStart['takeUp'] = async (ids) => {
    const taskIds = ids as readonly TaskId[];
    try {
      await started;
      await commands.takeUp(taskIds, await retakeSlots(taskIds));
      missing = missing.filter((id) => !taskIds.includes(id));
    } catch (error) {
      log('could not continue tasks; the server tries again', { error, tasks: taskIds });
    }
  };
  return {
    start: async (): Promise<void> => {
      started = supervisor.start({ agent, dropTasks: commands.dropAll, restore });
      await started;
      sweep().catch((error: unknown) =>
        log('could not check the folders of earlier attempts', { error }),
      );
    },
    takeUp,
    takeUpMissing: async () => {
      await started;
      missing = commands.missingOf((await store.pendingOf(node)) as readonly TaskId[]);
      if (missing.length === 0) return;
      log('continues tasks that it has, and had not loaded', {
        count: missing.length,
        tasks: missing.slice(0, namedAtMost),
      });
      void takeUp(missing);
    },
    notLoaded: () => [...commands.failing(), ...commands.missingOf(missing)],
  };
};
