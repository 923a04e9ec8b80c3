import { setImmediate as turn } from 'node:timers/promises';
import type { TaskService } from '../../actors/engine/service/task-service.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { isServiceError } from '../../machines/errors.ts';
import { finalStatuses } from '../../machines/task.ts';
import { invalidParams } from './errors.ts';
import { type A2aTask, type Artifact, wireState } from './protocol.ts';
import type { ReadRun } from './read-run.ts';
import type { ListParams } from './schemas.ts';
import { contextOf, taskObject } from './task-object.ts';

export interface RunListPorts {
  readonly service: Pick<TaskService, 'list'>;
  /** `view`: when it is known. @throws task_not_found */
  readonly readLatest: (taskId: string, view?: TaskView) => Promise<ReadRun>;
  readonly artifactsOf: (found: ReadRun) => Promise<readonly Artifact[]>;
}

/** A place in the list: it is compared by value, so it stays when its task moves. */
type Place = readonly [at: string, id: string];

const listPlaceOf = ({ updated_at, task_id }: TaskView): Place => [updated_at, task_id];

/** The latest first. */
const isListedBefore = ([at, id]: Place, [otherAt, otherId]: Place): boolean =>
  at === otherAt ? id < otherId : at > otherAt;

/** The first places of many, in their order. */
const createFirst = (most: number) => {
  const places: Place[] = [];
  return {
    places,
    add: (place: Place): void => {
      const last = places.at(-1);
      if (places.length === most && last !== undefined && !isListedBefore(place, last)) return;
      const at = places.findIndex((other) => isListedBefore(place, other));
      places.splice(at < 0 ? places.length : at, 0, place);
      if (places.length > most) places.pop();
    },
  };
};

const pageTokenOf = (place: Place): string =>
  Buffer.from(JSON.stringify(place)).toString('base64url');

const placeIn = (token: string | undefined): Place | null => {
  if (token === undefined || token === '') return null;
  try {
    const [at, id]: unknown[] = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
    if (typeof at === 'string' && typeof id === 'string') return [at, id];
  } catch {}
  throw invalidParams('pageToken', 'is not the nextPageToken of a page');
};

/** The status of our tasks that alone may have a state; absent: several. */
const ownStatuses: Readonly<Record<string, string>> = {
  [wireState('COMPLETED')]: 'complete',
  [wireState('FAILED')]: 'failed',
  [wireState('CANCELED')]: 'cancelled',
  [wireState('WORKING')]: 'active',
  [wireState('INPUT_REQUIRED')]: 'active',
};

const perPage = 1_000;

/** Other requests come in between the pages. */
async function* pagesOf(
  { service }: RunListPorts,
  wanted: string | undefined,
): AsyncGenerator<readonly TaskView[]> {
  const status = wanted === undefined ? undefined : ownStatuses[wanted];
  let cursor: string | undefined;
  do {
    const page = await service.list({
      limit: perPage,
      ...(status === undefined ? {} : { status }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield page.tasks;
    cursor = page.next_cursor;
    await turn();
  } while (cursor !== undefined);
}

/** A promise only where a journal has to be read: there are many tasks. */
const isWanted = (
  ports: RunListPorts,
  view: TaskView,
  { contextId, status }: ListParams,
  since: string | null,
): boolean | Promise<boolean> => {
  if (contextId !== undefined && contextOf(view) !== contextId) return false;
  if (since !== null && view.updated_at < since) return false;
  if (status === undefined) return true;
  if (finalStatuses.has(view.status)) return view.status === ownStatuses[status];
  if (view.phase === 'waiting_for_run' && view.error === undefined)
    return status === wireState('SUBMITTED');
  return ports.readLatest(view.task_id, view).then(({ run }) => wireState(run.state) === status);
};

export interface TaskList {
  readonly tasks: readonly A2aTask[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

/** A task that was deleted since is left out. */
const shownTask = async (
  { readLatest, artifactsOf }: RunListPorts,
  [, taskId]: Place,
  { historyLength, includeArtifacts }: ListParams,
): Promise<readonly A2aTask[]> => {
  const found = await readLatest(taskId).catch((error: unknown) => {
    if (isServiceError(error) && error.code === 'task_not_found') return null;
    throw error;
  });
  if (found === null) return [];
  const artifacts = includeArtifacts ? { artifacts: await artifactsOf(found) } : {};
  return [taskObject(found, { historyLength, ...artifacts })];
};

/** The latest run of each task, by the time of its last change. @throws INVALID_PARAMS */
export const listRuns = async (ports: RunListPorts, params: ListParams): Promise<TaskList> => {
  const { status, pageSize, pageToken, statusTimestampAfter } = params;
  const after = placeIn(pageToken);
  const since =
    statusTimestampAfter === undefined ? null : new Date(statusTimestampAfter).toISOString();
  // One more than the page: then there is a next one.
  const first = createFirst(pageSize + 1);
  let totalSize = 0;
  for await (const views of pagesOf(ports, status))
    for (const view of views) {
      const wanted = isWanted(ports, view, params, since);
      if (!(typeof wanted === 'boolean' ? wanted : await wanted)) continue;
      totalSize += 1;
      const place = listPlaceOf(view);
      if (after === null || isListedBefore(after, place)) first.add(place);
    }
  const shown = first.places.slice(0, pageSize);
  const last = shown.at(-1);
  const tasks = await Promise.all(shown.map((place) => shownTask(ports, place, params)));
  return {
    tasks: tasks.flat(),
    nextPageToken: last === undefined || first.places.length <= pageSize ? '' : pageTokenOf(last),
    pageSize,
    totalSize,
  };
};
