import { useSignal } from '@preact/signals';
import { changeTask } from '../../data/actions.ts';
import { asksForStep } from '../../model/state.ts';
import { Button } from '../../parts/button.tsx';
import { workflowPath } from '../../shell/router.ts';
import type { AskedProps } from './asked.tsx';

const workflowOf = (labels: readonly string[]): string =>
  labels.find((label) => label.startsWith('workflow:'))?.slice('workflow:'.length) ?? '';

/** A step of a workflow that a person does, or the question whether a step is done. */
export const PersonsStep = ({ task, fail }: AskedProps) => {
  const reason = useSignal('');
  const close = (word: string) => () =>
    changeTask('close', task, [word, reason.value].filter((text) => text !== '').join(', '));
  const [what = ''] = task.description.split('\n\n');
  return (
    <>
      <p class="asked">{what}</p>
      <div class="actions">
        {asksForStep(task.labels) ? (
          <>
            <Button kind="primary" onPress={close('yes')} onError={fail}>
              Yes
            </Button>
            <Button onPress={close('no')} onError={fail}>
              No
            </Button>
          </>
        ) : (
          <Button kind="primary" onPress={close('')} onError={fail}>
            Done
          </Button>
        )}
        <input
          type="text"
          aria-label={`Reason, for ${task.title}`}
          placeholder="Reason, kept with the task"
          value={reason.value}
          onInput={({ currentTarget }) => {
            reason.value = currentTarget.value;
          }}
        />
        <a class="button quiet" href={workflowPath(workflowOf(task.labels))}>
          Workflow
        </a>
      </div>
    </>
  );
};
