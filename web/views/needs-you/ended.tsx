import { changeTask, conflicts, merge, review } from '../../data/actions.ts';
import { Button } from '../../parts/button.tsx';
import { taskPath } from '../../shell/router.ts';
import type { AskedProps } from './asked.tsx';

export const Failed = ({ task, fail }: AskedProps) => (
  <>
    <pre class="box sunken">{task.error?.message ?? 'The attempt failed.'}</pre>
    <div class="actions">
      <Button hotkey="r" onPress={() => changeTask('retry', task)} onError={fail}>
        Retry
      </Button>
      {task.work !== undefined && (
        <a class="button quiet" href={taskPath(task.task_id, 'diff')}>
          Diff
        </a>
      )}
      <a class="button quiet" href={taskPath(task.task_id)}>
        Log
      </a>
      <Button kind="quiet" onPress={() => changeTask('close', task)} onError={fail}>
        Close as it is
      </Button>
    </div>
  </>
);

const toResolve = (files: readonly string[]) =>
  files.map((path) => ({
    path,
    text: 'The merge conflicts in this file. Bring the branch up to date with it and resolve this.',
  }));

export const ReadyToMerge = ({ task, fail }: AskedProps) => {
  const conflict = conflicts.value.get(task.task_id);
  return (
    <>
      {task.result !== undefined && <p class="asked">{task.result}</p>}
      <div class="actions">
        {conflict === undefined || conflict.length === 0 ? (
          <Button hotkey="m" onPress={() => merge(task)} onError={fail}>
            Merge
          </Button>
        ) : (
          <Button
            hotkey="s"
            onPress={() => review(task, 'request_changes', toResolve(conflict))}
            onError={fail}
          >
            Send back to resolve
          </Button>
        )}
        <a class="button quiet" href={taskPath(task.task_id, 'diff')}>
          {conflict === undefined ? 'Diff and send back' : 'Diff'}
        </a>
      </div>
    </>
  );
};
