import { changeTask, conflictOf, review } from '../../data/actions.ts';
import { Button } from '../../parts/button.tsx';
import { Cause } from '../../parts/cause.tsx';
import { MergeButton } from '../../parts/merge-button.tsx';
import { Prose } from '../../parts/prose.tsx';
import { taskPath } from '../../shell/router.ts';
import type { AskedProps } from './asked.tsx';

export const Failed = ({ task, fail }: AskedProps) => (
  <>
    <Cause error={task.error} />
    <div class="actions">
      <Button
        hotkey="r"
        hint={`Starts attempt ${task.attempt + 1}`}
        onPress={() => changeTask('retry', task)}
        onError={fail}
      >
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
      <Button
        kind="quiet"
        hint="Completes the task without another attempt; nothing is merged"
        onPress={() => changeTask('close', task)}
        onError={fail}
      >
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
  const conflict = conflictOf(task);
  const files = (conflict?.same_lines === true ? conflict.files : null) ?? [];
  return (
    <>
      {task.result !== undefined && <Prose kind="asked" text={task.result} />}
      <div class="actions">
        {files.length === 0 ? (
          <MergeButton task={task} fail={fail} />
        ) : (
          <Button
            hotkey="s"
            hint={`Starts attempt ${task.attempt + 1}, which resolves the conflict`}
            onPress={() => review(task, 'request_changes', toResolve(files))}
            onError={fail}
          >
            Send back to resolve
          </Button>
        )}
        <a class="button quiet" href={taskPath(task.task_id, 'diff')}>
          {files.length === 0 ? 'Diff and send back' : 'Diff'}
        </a>
      </div>
    </>
  );
};
