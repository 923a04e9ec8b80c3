import { isRecorded } from '../data/source.ts';
import { tasks } from '../data/tasks.ts';
import { lookOf } from '../model/state.ts';
import { taskPath } from '../shell/router.ts';
import { Icon } from './icon.tsx';

/** A task in a list of tasks: icon, title, id. */
export const TaskLine = ({ id }: { id: string }) => {
  // A file holds one task.
  if (isRecorded()) return <p class="id">{id}</p>;
  const task = tasks.value.get(id);
  const look = task === undefined ? null : lookOf(task);
  return (
    <a class="task-line" href={taskPath(id)}>
      {look !== null && <Icon name={look.icon} tone={look.tone} />}
      <span class="cut" title={task?.title}>
        {task?.title ?? 'not in this project'}
      </span>
      <span class="id">{id}</span>
    </a>
  );
};
