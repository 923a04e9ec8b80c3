import type { Signal } from '@preact/signals';
import { changeAll, run } from '../../data/actions.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { Button } from '../../parts/button.tsx';

/** Ids of the selected tasks; null: the board shows no boxes to tick. */
export type Selected = Signal<ReadonlySet<string> | null>;

/** A box for one task or for all of a column. */
export const Tick = ({
  ids,
  name,
  selected,
}: {
  ids: readonly string[];
  name: string;
  selected: Selected;
}) => {
  const now = selected.value;
  if (now === null || ids.length === 0) return null;
  return (
    <input
      type="checkbox"
      aria-label={`Select ${name}`}
      checked={ids.every((id) => now.has(id))}
      onChange={({ currentTarget }) => {
        const next = new Set(now);
        for (const id of ids)
          if (currentTarget.checked) next.add(id);
          else next.delete(id);
        selected.value = next;
      }}
    />
  );
};

/** What can be done with the selected tasks that are shown. */
export const SelectionActions = ({
  selected,
  isShown,
  message,
}: {
  selected: Selected;
  isShown: (task: TaskView) => boolean;
  /** The tasks that were not changed. */
  message: Signal<string | null>;
}) => {
  const fail = (text: string): void => {
    message.value = text;
  };
  const end = (): void => {
    selected.value = null;
  };
  if (selected.value === null)
    return (
      <Button
        hotkey="x"
        onPress={() => {
          message.value = null;
          selected.value = new Set();
        }}
      >
        Select
      </Button>
    );
  const chosen = [...selected.value].flatMap((id) => {
    const task = tasks.value.get(id);
    return task !== undefined && isShown(task) ? [task] : [];
  });
  const whyNot = chosen.length === 0 ? 'Select a task first' : null;
  const act = (change: () => Promise<string | null>) => async (): Promise<void> => {
    message.value = await change();
    end();
  };
  return (
    <>
      <output class="small">{chosen.length} selected</output>
      <Button
        onPress={act(() =>
          run(
            chosen.map(({ task_id }) => task_id),
            null,
          ),
        )}
        whyNot={whyNot}
        onError={fail}
      >
        Run
      </Button>
      <Button
        kind="danger"
        sure={`Cancel ${chosen.length}${chosen.some(({ status }) => status === 'started') ? ', their processes end' : ''}`}
        onPress={act(() => changeAll('cancel', chosen))}
        whyNot={whyNot}
        onError={fail}
      >
        Cancel
      </Button>
      <Button onPress={act(() => changeAll('close', chosen))} whyNot={whyNot} onError={fail}>
        Close as they are
      </Button>
      <Button kind="quiet" hotkey="x" onPress={end}>
        Done
      </Button>
    </>
  );
};
