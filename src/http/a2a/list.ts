import type { TaskService } from '../../actors/engine/task-service.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { invalidParams } from './errors.ts';
import { type Artifact, type Task, wireState } from './protocol.ts';
import type { ReadRun } from './read-run.ts';
import type { ListParams } from './schemas.ts';
import { contextOf, taskObject } from './task-object.ts';

export interface ListPorts {
  readonly service: Pick<TaskService, 'list'>;
  readonly readView: (view: TaskView) => Promise<ReadRun>;
  readonly artifactsOf: (found: ReadRun) => Promise<readonly Artifact[]>;
}

/** A place in the list: it is compared by value, so it stays when its task moves. */
type Place = readonly [at: string, id: string];

const placeOf = ({ updated_at, task_id }: TaskView): Place => [updated_at, task_id];

/** The latest first. */
const comesBefore = ([at, id]: Place, [otherAt, otherId]: Place): boolean =>
  at === otherAt ? id < otherId : at > otherAt;

const byPlace = (one: TaskView, other: TaskView): number =>
  comesBefore(placeOf(one), placeOf(other)) ? -1 : 1;

const tokenOf = (place: Place): string => Buffer.from(JSON.stringify(place)).toString('base64url');

const placeIn = (token: string | undefined): Place | null => {
  if (token === undefined || token === '') return null;
  try {
    const [at, id]: unknown[] = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
    if (typeof at === 'string' && typeof id === 'string') return [at, id];
  } catch {}
  throw invalidParams('pageToken', 'is not the nextPageToken of a page');
};

/** States of which the list of our tasks alone knows who may have them. */
const ours: Readonly<Record<string, string>> = {
  [wireState('COMPLETED')]: 'complete',
  [wireState('FAILED')]: 'failed',
  [wireState('CANCELED')]: 'cancelled',
};
const atWork: ReadonlySet<string> = new Set(
  (['WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED'] as const).map(wireState),
);

const perPage = 1_000;

async function* viewsOf(
  { service }: ListPorts,
  status: string | undefined,
): AsyncGenerator<TaskView> {
  let cursor: string | undefined;
  do {
    const page = await service.list({
      limit: perPage,
      ...(status === undefined ? {} : { status }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield* page.tasks;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

const ourStatus = (status: string | undefined): string | undefined =>
  status === undefined ? undefined : ours[status];

export interface TaskList {
  readonly tasks: readonly Task[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

/** The latest run of each task, by the time of its last change. @throws INVALID_PARAMS */
export const listRuns = async (ports: ListPorts, params: ListParams): Promise<TaskList> => {
  const { contextId, status, pageSize, pageToken, historyLength, includeArtifacts } = params;
  const after = placeIn(pageToken);
  const since = params.statusTimestampAfter;
  const from = since === undefined ? null : new Date(since).toISOString();
  const found: TaskView[] = [];
  for await (const view of viewsOf(ports, ourStatus(status))) {
    if (contextId !== undefined && contextOf(view) !== contextId) continue;
    if (from !== null && view.updated_at < from) continue;
    if (status !== undefined && !mayHave(view, status)) continue;
    found.push(view);
  }
  const wanted = status === undefined ? found : await withState(ports, found, status);
  const rest = wanted
    .sort(byPlace)
    .filter((view) => after === null || comesBefore(after, placeOf(view)));
  const shown = rest.slice(0, pageSize);
  const last = shown.at(-1);
  return {
    tasks: await Promise.all(
      shown.map(async (view) => {
        const run = await ports.readView(view);
        const artifacts = includeArtifacts ? await ports.artifactsOf(run) : undefined;
        return taskObject(run, {
          historyLength,
          ...(artifacts === undefined ? {} : { artifacts }),
        });
      }),
    ),
    nextPageToken: last === undefined || rest.length <= shown.length ? '' : tokenOf(placeOf(last)),
    pageSize,
    totalSize: wanted.length,
  };
};

const isOver = ({ status }: TaskView): boolean =>
  ['complete', 'failed', 'cancelled'].includes(status);

/** False where the view of a task already says that it has another state. */
const mayHave = (view: TaskView, status: string): boolean =>
  ours[status] === undefined
    ? !isOver(view) && (!atWork.has(status) || view.phase !== 'waiting_for_run')
    : view.status === ours[status];

/** Only a task's journal tells the states of a task at work apart. */
const withState = async (
  { readView }: ListPorts,
  views: readonly TaskView[],
  status: string,
): Promise<TaskView[]> => {
  if (ours[status] !== undefined) return [...views];
  const wanted: TaskView[] = [];
  for (const view of views) {
    const isUntouched = view.phase === 'waiting_for_run' && view.error === undefined;
    const state = isUntouched
      ? wireState('SUBMITTED')
      : wireState((await readView(view)).run.state);
    if (state === status) wanted.push(view);
  }
  return wanted;
};
