import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { call } from '../../data/call.ts';
import { openHistory } from '../../data/history.ts';
import { now } from '../../data/live.ts';
import { putTask, type TaskView, tasks } from '../../data/tasks.ts';
import { logOf } from '../../model/log.ts';
import { NoTask } from '../../parts/no-task.tsx';
import { Problem } from '../../parts/notice.tsx';
import { Asked } from '../needs-you/need-row.tsx';
import { Log } from './log.tsx';
import { Results } from './results.tsx';
import { Side } from './side.tsx';
import { TaskHead } from './task-head.tsx';
import { Timeline } from './timeline.tsx';

const tabs = ['Log', 'Results', 'Description'] as const;
type Tab = (typeof tabs)[number];

const Description = ({ task }: { task: TaskView }) => (
  <div class="text-block">
    <pre class="prose">{task.description}</pre>
  </div>
);

/** Reads the task with its attempts and its work; the list has neither. */
const useDetails = (taskId: string, fail: (message: string) => void): void => {
  useEffect(() => {
    call<TaskView>('status', { task_id: taskId }).then(putTask, (error: Error) =>
      fail(error.message),
    );
  }, [taskId, fail]);
};

const Body = ({ task }: { task: TaskView }) => {
  const history = useMemo(() => openHistory(task.task_id), [task.task_id]);
  useEffect(() => history.close, [history]);
  const tab = useSignal<Tab>(task.status === 'complete' ? 'Results' : 'Log');
  const attempt = useSignal<number | null>(null);
  const shown = attempt.value ?? task.attempt;
  const items = useComputed(() => logOf(history.frames.value, attempt.value ?? task.attempt));
  const isLive = task.status === 'started' || task.status === 'queued';
  return (
    <>
      <Timeline frames={history.frames.value} now={isLive ? now.value : 0} />
      <div class="task-body">
        <section class="task-main" aria-label="Log and results">
          <div class="tabs" role="tablist">
            {tabs.map((name) => (
              <button
                key={name}
                type="button"
                role="tab"
                aria-selected={tab.value === name}
                onClick={() => {
                  tab.value = name;
                }}
              >
                {name}
              </button>
            ))}
            {task.attempt > 1 && tab.value === 'Log' && (
              <label class="attempt-choice">
                Attempt
                <select
                  value={`${shown}`}
                  onChange={({ currentTarget }) => {
                    attempt.value = Number(currentTarget.value);
                  }}
                >
                  {Array.from({ length: task.attempt }, (_, index) => (
                    <option key={`${index}`} value={`${index + 1}`}>
                      {index + 1}
                    </option>
                  ))}
                </select>
              </label>
            )}
          </div>
          {tab.value === 'Log' && (
            <Log
              items={items.value}
              isCut={history.isCut.value}
              isRead={history.isRead.value}
              task={task}
            />
          )}
          {tab.value === 'Results' && <Results task={task} />}
          {tab.value === 'Description' && <Description task={task} />}
        </section>
        <Side task={task} />
      </div>
    </>
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
  return (
    <article class="task">
      <TaskHead task={task} fail={fail} />
      <Problem message={problem} />
      {task.awaiting !== undefined && (
        <div class="task-asks">
          <Asked task={task} fail={fail} />
        </div>
      )}
      <Body task={task} />
    </article>
  );
};
