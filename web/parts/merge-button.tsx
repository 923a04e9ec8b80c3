import { useSignal } from '@preact/signals';
import { messageOf } from '../../src/machines/message-of.ts';
import { changeTask, merge, undo, update } from '../data/actions.ts';
import type { TaskView } from '../data/tasks.ts';
import { isMerging } from '../model/state.ts';
import { Button, type ButtonProps } from './button.tsx';

interface MergeProps {
  readonly task: TaskView;
  readonly kind?: ButtonProps['kind'];
  readonly fail: (message: string) => void;
}

const orThrow = (why: string | null): void => {
  if (why !== null) throw new Error(why);
};

export const MergeButton = ({ task, kind = 'plain', fail }: MergeProps) => {
  if (isMerging(task))
    return (
      <Button kind="quiet" onPress={() => changeTask('cancel', task)} onError={fail}>
        {task.work?.merge?.message ? 'End its update' : 'Take out of the queue'}
      </Button>
    );
  return (
    <>
      {task.work?.merge?.updatable && (
        <Button
          hotkey="u"
          hint="Brings your branch into it"
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
};

/** Where landed work depends on it, that is named before another press undoes both. */
export const UndoButton = ({ task, fail }: MergeProps) => {
  const withDependents = useSignal(false);
  const press = async (): Promise<void> => {
    try {
      orThrow(await undo(task, withDependents.value));
    } catch (error) {
      withDependents.value = messageOf(error).includes('depends on it');
      throw error;
    }
  };
  return (
    <Button
      kind="quiet"
      hint="A tested commit takes it back"
      sure={
        withDependents.value ? 'Undo it with what depends on it' : 'Undo it, the task is open again'
      }
      onPress={press}
      onError={fail}
    >
      Undo
    </Button>
  );
};
