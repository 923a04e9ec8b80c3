import type { Signal } from '@preact/signals';
import { run } from '../data/actions.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

/** Starts every open task that has a role, each when it is ready. `message`: which did not start. */
export const RunAll = ({ message }: { message: Signal<string | null> }) => (
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
);
