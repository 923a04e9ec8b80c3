import type { TaskView } from '../data/tasks.ts';
import { lookOf } from '../model/state.ts';
import { Icon } from './icon.tsx';

export const StatusPill = ({ task }: { task: TaskView }) => {
  const { icon, tone, word } = lookOf(task);
  return (
    <span class={`pill tone-${tone} tint-${tone}`}>
      <Icon name={icon} />
      {word}
    </span>
  );
};
