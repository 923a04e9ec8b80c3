import type { TaskView } from '../../../actors/journal/task-view.ts';
import type { Style } from '../styled.ts';

const stylesOfStatus: Readonly<Record<string, Style>> = {
  started: 'cyan',
  complete: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

/** The colour of a task's status; a task that asks or is parked has that of a warning. */
export const statusStyle = ({
  status,
  awaiting,
  parked_until: parked,
}: TaskView): Style | undefined =>
  awaiting === undefined && parked === undefined ? stylesOfStatus[status] : 'yellow';
