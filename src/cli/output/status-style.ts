import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Style } from './styled.ts';

const styles: Readonly<Record<string, Style>> = {
  started: 'cyan',
  complete: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

/** The colour of a task's status; a task that asks has that of a warning. */
export const statusStyle = ({ status, awaiting }: TaskView): Style | undefined =>
  awaiting === undefined ? styles[status] : 'yellow';
