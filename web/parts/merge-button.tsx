import { merge, update } from '../data/actions.ts';
import type { TaskView } from '../data/tasks.ts';
import { Button, type ButtonProps } from './button.tsx';

interface MergeProps {
  readonly task: TaskView;
  readonly kind?: ButtonProps['kind'];
  readonly fail: (message: string) => void;
}

export const MergeButton = ({ task, kind = 'plain', fail }: MergeProps) => (
  <>
    {task.work?.merge?.state === 'refused' && (
      <Button
        hotkey="u"
        hint={`Brings your branch into its work, in attempt ${task.attempt + 1} if need be`}
        onPress={() => update(task)}
        onError={fail}
      >
        Update
      </Button>
    )}
    <Button
      kind={kind}
      hotkey="m"
      hint="Adds the work to your branch"
      onPress={() => merge(task)}
      onError={fail}
    >
      Merge
    </Button>
  </>
);
