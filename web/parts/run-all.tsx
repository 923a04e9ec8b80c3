import { useSignal } from '@preact/signals';
import { run } from '../data/actions.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';
import { Problem } from './notice.tsx';

/** Starts every open task that has a role, each when it is ready. */
export const RunAll = () => {
  const message = useSignal<string | null>(null);
  return (
    <span class="run-all">
      <Problem message={message} />
      <Button
        onPress={async () => {
          message.value = await run(null, null);
        }}
        onError={(text) => {
          message.value = text;
        }}
      >
        <Icon name="play" />
        Run all
      </Button>
    </span>
  );
};
