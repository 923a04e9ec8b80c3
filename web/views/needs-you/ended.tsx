import { changeTask } from '../../data/actions.ts';
import { tasks } from '../../data/tasks.ts';
import { whyOf } from '../../model/state.ts';
import { Button } from '../../parts/button.tsx';
import { Cause, Refused } from '../../parts/cause.tsx';
import { MergeButton } from '../../parts/merge-button.tsx';
import { Prose } from '../../parts/prose.tsx';
import { PublishButton, PullRequestLink } from '../../parts/pull-request.tsx';
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
        hint="Completes the task; nothing is merged"
        onPress={() => changeTask('close', task)}
        onError={fail}
      >
        Close as it is
      </Button>
    </div>
  </>
);

/** A pull request that waits for a person. */
export const AtForge = ({ task, fail }: AskedProps) => (
  <>
    <p class="asked">{task.pull_request?.reason}</p>
    <div class="actions">
      {task.pull_request && <PullRequestLink pullRequest={task.pull_request} kind="button" />}
      <PublishButton task={task} fail={fail} />
      <a class="button quiet" href={taskPath(task.task_id, 'diff')}>
        Diff and send back
      </a>
    </div>
  </>
);

export const ReadyToMerge = ({ task, fail }: AskedProps) => {
  return (
    <>
      <Refused task={task} />
      {task.work?.conflicts_with !== undefined && (
        <p class="asked">{whyOf(task, undefined, tasks.value)}</p>
      )}
      {task.result !== undefined && <Prose kind="asked" text={task.result} />}
      <div class="actions">
        <MergeButton task={task} fail={fail} />
        <PublishButton task={task} fail={fail} />
        <a class="button quiet" href={taskPath(task.task_id, 'diff')}>
          Diff and send back
        </a>
      </div>
    </>
  );
};
