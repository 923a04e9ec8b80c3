import type { TaskView } from '../../../actors/journal/task-view.ts';
import { pullRequestOf } from '../../words/state-words.ts';
import type { Style } from '../styled.ts';

const stylesOfStatus: Readonly<Record<string, Style>> = {
  started: 'cyan',
  complete: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

/** The colour of a task's status; one that asks or is parked, or whose pull request waits for a person, has that of a warning. */
export const statusStyle = ({
  status,
  awaiting,
  parked_until: parked,
  work,
  pull_request,
}: TaskView): Style | undefined =>
  awaiting === undefined &&
  parked === undefined &&
  pullRequestOf({ status, work, pull_request })?.waits_for !== 'person'
    ? stylesOfStatus[status]
    : 'yellow';
