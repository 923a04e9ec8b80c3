import type { Signal } from '@preact/signals';
import { merge } from '../data/actions.ts';
import { tasks } from '../data/tasks.ts';
import { isMerging, isToReview } from '../model/state.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

/** Merges all that waits for it, where there is more than one. `message`: which were refused. */
export const MergeAll = ({ message }: { message: Signal<string | null> }) => {
  const all = [...tasks.value.values()].filter((task) => isToReview(task) && !isMerging(task));
  if (all.length < 2) return null;
  return (
    <Button
      hint="Tested together, dependencies first"
      onPress={async () => {
        message.value = await merge(all);
      }}
      onError={(text) => {
        message.value = text;
      }}
    >
      <Icon name="merge" />
      Merge all {all.length}
    </Button>
  );
};
