import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import type { ActorReads, SavedActor, StoreLeases } from '../../store/port.ts';
import type { TaskRegistry } from './task-registry.ts';

/** After as many restores, it is restored while no other such attempt is. */
const restoresWithOthers = 2;
/** One that ends its server does so within this time. */
const aloneMs = 30_000;
const lookMs = 500;

export interface RestoreAttemptsPorts {
  readonly node: string;
  readonly store: Pick<ActorReads, 'actor'> & Pick<StoreLeases, 'countRestores' | 'forgetRestores'>;
  readonly registry: Pick<TaskRegistry, 'restore'>;
  readonly isStopped: () => boolean;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface RestoredTask {
  readonly taskId: TaskId;
  readonly known: TrackedTask | null;
  /** Its row; absent: not read yet. */
  readonly saved?: SavedActor;
}

/**
 * Restores tasks. `working`: those whose attempt runs, which waits for no person. Each restore of an
 * attempt is counted first, so that one that ends its server is not restored for ever. Others ran
 * beside it: those that were restored twice are restored one after another.
 */
export interface RestoreAttempts {
  (tasks: readonly RestoredTask[], working: readonly TaskId[]): Promise<void>;
  /** Those that wait for their turn. */
  readonly inTurn: ReadonlySet<TaskId>;
}

export const createRestoreAttempts = ({
  node,
  store,
  registry,
  isStopped,
  log,
}: RestoreAttemptsPorts): RestoreAttempts => {
  /** Restores go on while the store is away. */
  const count = async (taskIds: readonly TaskId[]): Promise<ReadonlyMap<string, number>> => {
    try {
      if (taskIds.length > 0) return await store.countRestores(node, taskIds);
    } catch (error) {
      log('could not count the restores of attempts', { error });
    }
    return new Map();
  };
  const forget = async (taskId: TaskId): Promise<void> => {
    try {
      if (!isStopped()) await store.forgetRestores(taskId);
    } catch (error) {
      log('could not forget the restores of an attempt', { task_id: taskId, error });
    }
  };
  /** It finished a step, is over, or is with another server. */
  const getsOn = async (taskId: TaskId): Promise<boolean> => {
    const saved = await store.actor(taskId);
    return saved?.pending !== true || saved.restores === 0 || saved.owner !== node;
  };
  const restoreAlone = async ({ taskId, known }: RestoredTask): Promise<void> => {
    const restores = (await count([taskId])).get(taskId);
    log('an attempt whose servers died is restored apart from others like it', {
      task_id: taskId,
      restores,
    });
    await registry.restore(taskId, { known, restores });
    for (let waited = 0; waited < aloneMs && !isStopped(); waited += lookMs) {
      if (await getsOn(taskId).catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, lookMs).unref());
    }
    await forget(taskId);
  };
  const inTurn = new Set<TaskId>();
  const restoreInTurn = async (suspects: readonly RestoredTask[]): Promise<void> => {
    for (const { taskId } of suspects) inTurn.add(taskId);
    for (const suspect of suspects) {
      if (!isStopped()) await restoreAlone(suspect);
      inTurn.delete(suspect.taskId);
    }
  };
  const suspectsAmong = async (working: readonly TaskId[]): Promise<ReadonlySet<TaskId>> => {
    const saved = await Promise.all(working.map((taskId) => store.actor(taskId)));
    return new Set(working.filter((_, at) => saved[at]?.restores === restoresWithOthers));
  };
  const restore = async (
    tasks: readonly RestoredTask[],
    working: readonly TaskId[],
  ): Promise<void> => {
    const suspects = await suspectsAmong(working);
    const counts = await count(working.filter((taskId) => !suspects.has(taskId)));
    for (const { taskId, ...given } of tasks)
      if (!suspects.has(taskId))
        await registry.restore(taskId, { ...given, restores: counts.get(taskId) });
    void restoreInTurn(tasks.filter(({ taskId }) => suspects.has(taskId)));
  };
  return Object.assign(restore, { inTurn });
};
