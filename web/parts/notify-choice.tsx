import { useSignal } from '@preact/signals';
import { tell, telling } from '../shell/notify.ts';
import { Button } from './button.tsx';
import { Problem } from './notice.tsx';

/** Turns desktop notifications on and off. */
export const NotifyChoice = () => {
  const problem = useSignal<string | null>(null);
  if (telling.value === null) return null;
  return (
    <>
      <Button
        kind="quiet"
        onPress={() => tell(telling.value !== true)}
        onError={(message) => {
          problem.value = message;
        }}
      >
        {telling.value ? 'Stop notifications' : 'Notify me on the desktop'}
      </Button>
      <Problem message={problem} />
    </>
  );
};
