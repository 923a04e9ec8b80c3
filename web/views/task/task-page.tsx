import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { now } from '../../data/now.ts';
import { call, isRecorded, openHistory } from '../../data/source.ts';
import { putTask, type TaskView, tasks } from '../../data/tasks.ts';
import { isToReview } from '../../model/state.ts';
import { Refused } from '../../parts/cause.tsx';
import { NoTask } from '../../parts/no-task.tsx';
import { Problem } from '../../parts/notice.tsx';
import { taskAtPath } from '../../shell/router.ts';
import { useMoment } from '../machines/moment.ts';
import { Scrubber } from '../machines/scrubber.tsx';
import { Asked } from '../needs-you/need-row.tsx';
import { TaskBody } from './task-body.tsx';
import { TaskHead } from './task-head.tsx';
import { Timeline } from './timeline.tsx';

/** Reads the task with its attempts and its work; the list has neither. */
const useDetails = (taskId: string, fail: (message: string) => void): void => {
  useEffect(() => {
    call<TaskView>('status', { task_id: taskId }).then(putTask, (error: Error) =>
      fail(error.message),
    );
  }, [taskId, fail]);
};

interface OpenedTask {
  readonly latest: TaskView;
  readonly problem: Signal<string | null>;
  readonly fail: (message: string) => void;
}

/** Around it is no element, which would hold what was drawn first as its child. */
const Opened = ({ latest, problem, fail }: OpenedTask) => {
  const id = latest.task_id;
  const history = useMemo(() => openHistory(id), [id]);
  useEffect(() => history.close, [history]);
  const shown = useMoment(history, (seq) => taskAtPath(id, seq));
  const { moment, isLatest } = shown;
  const until = isLatest ? null : moment;
  const task = until?.task ?? latest;
  const all = history.frames.value;
  const frames = useMemo(
    () => (until === null ? all : all.filter(({ seq }) => seq <= until.seq)),
    [all, until],
  );
  const isLive = task.status === 'started' || task.status === 'queued';
  const at = until?.at ?? now.value;
  const mayAct = isLatest && !isRecorded();
  return (
    <article class="task">
      <TaskHead task={task} fail={fail} at={at} mayAct={mayAct} />
      <Problem message={problem} />
      {mayAct && (task.awaiting !== undefined || task.phase === 'waiting_for_person') && (
        <div class="task-asks">
          <Asked task={task} fail={fail} />
        </div>
      )}
      {isToReview(task) && task.work?.merge?.state === 'refused' && (
        <div class="task-asks">
          <Refused task={task} />
        </div>
      )}
      <Timeline frames={frames} now={isLive ? at : 0} />
      <TaskBody task={task} history={history} frames={frames} shown={shown} />
      {(isRecorded() || !isLatest) && <Scrubber shown={shown} />}
    </article>
  );
};

export const TaskPage = ({ taskId }: { taskId: string }) => {
  const problem = useSignal<string | null>(null);
  const fail = useMemo(
    () => (message: string) => {
      problem.value = message;
    },
    [problem],
  );
  useDetails(taskId, fail);
  const task = tasks.value.get(taskId);
  if (task === undefined) return <NoTask id={taskId} />;
  return <Opened latest={task} problem={problem} fail={fail} />;
};
