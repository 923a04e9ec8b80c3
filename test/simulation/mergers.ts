import type { Merged } from '../../src/machines/merge-queue/merge-queue-context.ts';
import type { Server } from './life.ts';
import type { World } from './world.ts';

type Service = Server['system']['service'];
type Ask = <Result>(
  wish: (server: Server) => Promise<Result>,
  hear: (result: Result) => void,
) => void;

/** Who merges, and takes back what landed. */
export interface Mergers {
  act(): void;
  /** Merges all that can be merged. */
  mergeAll(): void;
  /** Requests that were not answered, and whose server lives. */
  waiting(): readonly string[];
}

export const createMergers = (
  { random, invariants, clock, project }: World,
  ask: Ask,
  anyTask: () => string | null,
): Mergers => {
  const { merges } = invariants;
  const open = new Map<number, { readonly what: string; readonly server: Server }>();
  let requests = 0;

  /** Some go away before they are answered. */
  const request = <Result>(
    what: string,
    wish: (service: Service, signal: AbortSignal) => Promise<Result>,
    hear: (result: Result, since: number) => void,
  ): void => {
    requests += 1;
    const since = merges.moves();
    const number = requests;
    const gone = new AbortController();
    if (random.chance(0.1)) clock.after('world', random.delay(5_000), () => gone.abort());
    ask(
      (server) => {
        open.set(number, { what, server });
        return wish(server.system.service, gone.signal).finally(() => open.delete(number));
      },
      (result) => hear(result, since),
    );
  };
  const how = () => ({
    verify: !random.chance(0.05),
    force: random.chance(0.1),
    ...(random.chance(0.1) ? { squash: false } : {}),
  });
  const merge = (taskId: string): void =>
    request(
      `a merge of ${taskId}`,
      (service, signal) => service.merge({ taskId, ...how() }, signal),
      ({ task_id, attempt, ...merged }, since) =>
        merges.answered({ taskId: task_id, attempt }, merged as Merged, false, since),
    );
  const mergeMany = (taskIds: readonly string[], all: boolean): void =>
    request(
      `a merge of ${all ? 'all' : taskIds.join(', ')}`,
      (service, signal) => service.mergeMany({ taskIds, all, ...how() }, signal),
      ({ landed }, since) => {
        for (const { task_id: taskId, attempt, status } of landed)
          merges.answered({ taskId, attempt }, { status }, false, since);
      },
    );
  const undo = (taskId: string): void =>
    request(
      `an undo of ${taskId}`,
      (service, signal) => service.undo({ taskId, withDependents: random.chance(0.5) }, signal),
      ({ landed }, since) => {
        for (const { task_id, attempt, status } of landed)
          merges.answered({ taskId: task_id, attempt }, { status }, true, since);
      },
    );

  return {
    mergeAll: () =>
      request(
        'a merge of all',
        (service) => service.mergeMany({ taskIds: [], all: true }),
        () => {},
      ),
    waiting: () => [...open.values()].flatMap(({ what, server }) => (server.alive ? [what] : [])),
    act: () => {
      const task = anyTask();
      const draw = random.below(100);
      if (draw < 20 || task === null) project?.commitByHand();
      else if (draw < 30) merge(task);
      else if (draw < 60) mergeMany([], true);
      else if (draw < 75) mergeMany([task, anyTask() ?? task], false);
      else if (draw < 93) undo(task);
      else
        ask(
          ({ system }) => system.service.discard(task, null, null),
          () => {},
        );
    },
  };
};
