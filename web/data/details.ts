import { batchSize, callEach } from './call.ts';
import { putTask, type TaskView, tasks } from './tasks.ts';

/** What was asked for, by task: its attempt and status at that time; of tasks that there are. */
const asked = new Map<string, string>();
const wanted = new Set<string>();
let isBusy = false;
/** Of tasks that ended, as many as people look at; the others when they are opened. */
const endedAtMost = 200;

const stampOf = ({ attempt, status }: TaskView): string => `${attempt} ${status}`;

const fetchWanted = async (): Promise<void> => {
  if (isBusy) return;
  isBusy = true;
  try {
    while (wanted.size > 0) {
      const ids = [...wanted].slice(0, batchSize);
      for (const id of ids) wanted.delete(id);
      const views = await callEach<TaskView>(
        'status',
        ids.map((task_id) => ({ task_id })),
      );
      for (const view of views) if (view !== null) putTask(view);
    }
  } catch {
    // The stream says that the server is lost; the next change asks again.
    asked.clear();
  } finally {
    isBusy = false;
  }
};

/** Reads tasks with their saved work and their attempts, a few at a time. */
export const readDetails = (ids: Iterable<string>): void => {
  for (const id of ids) wanted.add(id);
  if (wanted.size > 0) void fetchWanted();
};

/** Only `status` says whether work was merged, and with what it will conflict. */
export const readWork = (): void => {
  for (const id of asked.keys()) if (!tasks.value.has(id)) asked.delete(id);
  const ended = [...tasks.value.values()]
    .filter(
      ({ status, attempt }) => attempt > 0 && ['complete', 'failed', 'started'].includes(status),
    )
    .filter((task) => asked.get(task.task_id) !== stampOf(task))
    .sort((one, other) => (one.updated_at < other.updated_at ? 1 : -1))
    .slice(0, endedAtMost);
  for (const task of ended) asked.set(task.task_id, stampOf(task));
  readDetails(ended.map(({ task_id }) => task_id));
};
