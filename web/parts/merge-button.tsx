import { useSignal } from '@preact/signals';
import { messageOf } from '../../src/machines/message-of.ts';
import { merge, undo, update } from '../data/actions.ts';
import type { TaskView } from '../data/tasks.ts';
import { Button, type ButtonProps } from './button.tsx';

interface MergeProps {
  readonly task: TaskView;
  readonly kind?: ButtonProps['kind'];
  readonly fail: (message: string) => void;
}

const orThrow = (why: string | null): void => {
  if (why !== null) throw new Error(why);
};

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
      onPress={async () => orThrow(await merge([task]))}
      onError={fail}
    >
      Merge
    </Button>
  </>
);

const undoWords = ['Undo', 'Undo it, the task is open again', 'Undo it with what depends on it'];

/** The first press asks; where landed work depends on it, that is named before the third undoes both. */
export const UndoButton = ({ task, fail }: MergeProps) => {
  const step = useSignal(0);
  const press = async (): Promise<void> => {
    const now = step.value;
    step.value = now === 0 ? 1 : 0;
    if (now === 0) return;
    try {
      orThrow(await undo(task, now === 2));
    } catch (error) {
      if (messageOf(error).includes('depends on it')) step.value = 2;
      throw error;
    }
  };
  return (
    <Button
      kind={step.value === 0 ? 'quiet' : 'danger'}
      hint="A commit takes its changes back, tested as what is merged"
      onPress={press}
      onError={fail}
    >
      {undoWords[step.value]}
    </Button>
  );
};
