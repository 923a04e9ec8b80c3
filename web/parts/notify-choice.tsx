import { useSignal } from '@preact/signals';
import { notifies, setNotifies } from '../shell/notify.ts';
import { Button } from './button.tsx';
import { Problem } from './notice.tsx';

/** Turns desktop notifications on and off. */
export const NotifyChoice = () => {
  const problem = useSignal<string | null>(null);
  if (notifies.value === null) return null;
  return (
    <>
      <Button
        kind="quiet"
        onPress={() => setNotifies(notifies.value !== true)}
        onError={(message) => {
          problem.value = message;
        }}
      >
        {notifies.value ? 'Stop notifications' : 'Notify me on the desktop'}
      </Button>
      <Problem message={problem} />
    </>
  );
};
