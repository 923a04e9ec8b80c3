import { conflictOf, merge } from '../data/actions.ts';
import type { TaskView } from '../data/tasks.ts';
import { Button, type ButtonProps } from './button.tsx';

interface MergeProps {
  readonly task: TaskView;
  readonly kind?: ButtonProps['kind'];
  readonly fail: (message: string) => void;
}

/** As `merge.style` says; as one commit when a fast-forward was refused since the branch moved on. */
export const MergeButton = ({ task, kind = 'plain', fail }: MergeProps) => {
  const isSquash = conflictOf(task)?.moved_on === true;
  return (
    <Button
      kind={kind}
      hotkey="m"
      hint="Adds the work to your branch"
      onPress={() => merge(task, isSquash)}
      onError={fail}
    >
      {isSquash ? 'Merge as one commit' : 'Merge'}
    </Button>
  );
};
