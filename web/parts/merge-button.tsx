import { merge } from '../data/actions.ts';
import type { TaskView } from '../data/tasks.ts';
import { Button, type ButtonProps } from './button.tsx';

interface MergeProps {
  readonly task: TaskView;
  readonly kind?: ButtonProps['kind'];
  readonly fail: (message: string) => void;
}

export const MergeButton = ({ task, kind = 'plain', fail }: MergeProps) => (
  <Button
    kind={kind}
    hotkey="m"
    hint="Adds the work to your branch"
    onPress={() => merge(task)}
    onError={fail}
  >
    Merge
  </Button>
);
