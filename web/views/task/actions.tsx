import { useSignal } from '@preact/signals';
import { changeTask, discard, exportTask, run } from '../../data/actions.ts';
import type { TaskView } from '../../data/tasks.ts';
import { roles } from '../../data/totals.ts';
import { hasOpenWork, isMerging, isToReview } from '../../model/state.ts';
import { Button } from '../../parts/button.tsx';
import { MergeButton, UndoButton } from '../../parts/merge-button.tsx';
import { PublishButton } from '../../parts/pull-request.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { taskPath } from '../../shell/router.ts';

interface ActionProps {
  readonly task: TaskView;
  readonly fail: (message: string) => void;
}

const whatEnds = ({ status, phase }: TaskView): string => {
  if (status === 'started') return 'its processes end';
  return phase === 'backing_off' ? 'it does not go on' : 'it does not start';
};

/** Starts the task with all that it depends on. */
const Run = ({ task, fail }: ActionProps) => {
  const role = useSignal<string>(task.role ?? '');
  const start = async (): Promise<void> => {
    const why = await run([task.task_id], role.value === '' ? null : role.value);
    if (why !== null) throw new Error(why);
  };
  return (
    <span class="run">
      {task.role === undefined && (
        <select
          aria-label="Role that works on it"
          value={role.value}
          onChange={({ currentTarget }) => {
            role.value = currentTarget.value;
          }}
        >
          <option value="">Role</option>
          {roles.value.map((each) => (
            <option key={each.role} value={each.role}>
              {each.role}
            </option>
          ))}
        </select>
      )}
      <Button
        kind="primary"
        onPress={start}
        onError={fail}
        whyNot={role.value === '' ? 'Choose the role that works on it' : null}
      >
        Run
      </Button>
    </span>
  );
};

const restingPhases: ReadonlySet<string> = new Set(['waiting_for_run', 'waiting_for_person']);
const isAsked = ({ status, phase }: TaskView): boolean =>
  status === 'started' || (status === 'queued' && !restingPhases.has(phase));

/** What is asked to run, or waits for others, is refused. */
const mayClose = ({ status, phase, parked_until: parked }: TaskView): boolean =>
  status === 'failed' ||
  status === 'cancelled' ||
  phase === 'waiting_for_run' ||
  parked !== undefined;

export const Actions = ({ task, fail }: ActionProps) => {
  const { status, task_id: id, work } = task;
  const isWaiting = status === 'queued' && task.phase === 'waiting_for_dependencies';
  return (
    <div class="task-actions">
      <a class="button quiet" href={taskPath(id, 'edit')} data-key="e">
        Edit
      </a>
      <Button
        kind="quiet"
        hint="Log, charts and changes in one file"
        onPress={async () => saveFile(await exportTask(id), `${id}.html`)}
        onError={fail}
      >
        Export
      </Button>
      {status === 'complete' && (
        <Button kind="quiet" onPress={() => changeTask('reopen', task)} onError={fail}>
          Reopen
        </Button>
      )}
      {mayClose(task) && (
        <Button kind="quiet" onPress={() => changeTask('close', task)} onError={fail}>
          Close as it is
        </Button>
      )}
      {work?.merged_at !== undefined && !isMerging(task) && <UndoButton task={task} fail={fail} />}
      {hasOpenWork(task) && (
        <Button
          kind="quiet"
          sure="Discard it, nothing is merged"
          hint="It is not merged or built on; its branch stays until agent prune"
          onPress={() => discard(task)}
          onError={fail}
        >
          Discard
        </Button>
      )}
      {work?.branch !== undefined && (
        <a class="button" href={taskPath(id, 'diff')} data-key="v">
          Diff
        </a>
      )}
      {(status === 'failed' || status === 'cancelled') && (
        <Button kind="primary" hotkey="r" onPress={() => changeTask('retry', task)} onError={fail}>
          Retry
        </Button>
      )}
      {isAsked(task) && (
        <Button
          kind="danger"
          sure={`Cancel it, ${whatEnds(task)}`}
          onPress={() => changeTask('cancel', task)}
          onError={fail}
        >
          Cancel
        </Button>
      )}
      {(status === 'queued' && task.phase === 'waiting_for_run') || isWaiting ? (
        <Run task={task} fail={fail} />
      ) : null}
      <PublishButton task={task} fail={fail} mayDraft />
      {(isToReview(task) || isMerging(task)) && (
        <MergeButton kind="primary" task={task} fail={fail} />
      )}
    </div>
  );
};
