import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Frame } from '../../data/frame.ts';
import { parts } from '../../data/later-parts.ts';
import { isRecorded, type TaskHistory } from '../../data/source.ts';
import type { TaskView } from '../../data/tasks.ts';
import { createLog } from '../../model/log.ts';
import { Prose } from '../../parts/prose.tsx';
import { atSeq } from '../../shell/router.ts';
import type { Shown } from '../machines/moment.ts';
import { ChangesSoFar } from './changes-so-far.tsx';
import { Log } from './log.tsx';
import { Results } from './results.tsx';
import { Side } from './side.tsx';

const tabs = ['Log', 'Changes', 'Results', 'Description'] as const;
type Tab = (typeof tabs)[number];

const Description = ({ task }: { task: TaskView }) => (
  <div class="text-block">
    <Prose text={task.description} />
    {task.attachments && <parts.Images task={task} />}
  </div>
);

const AttemptChoice = ({
  attempts,
  shown,
  choose,
}: {
  attempts: number;
  shown: number;
  choose: (attempt: number) => void;
}) => (
  <label class="attempt-choice">
    Attempt
    <select
      value={`${shown}`}
      onChange={({ currentTarget }) => choose(Number(currentTarget.value))}
    >
      {Array.from({ length: attempts }, (_, index) => (
        <option key={`${index}`} value={`${index + 1}`}>
          {index + 1}
        </option>
      ))}
    </select>
  </label>
);

/** Log, results and description of a task, and what is around it. */
export const TaskBody = ({
  task,
  history,
  frames,
  shown,
}: {
  task: TaskView;
  history: TaskHistory;
  frames: readonly Frame[];
  shown: Shown;
}) => {
  const isStepping = isRecorded() || atSeq.value !== null;
  // What an attempt that is over changed is among its results.
  const hasChanges = task.status === 'started' && !isStepping;
  const chosenTab = useSignal<Tab>(task.status === 'complete' && !isStepping ? 'Results' : 'Log');
  const tab = chosenTab.value === 'Changes' && !hasChanges ? 'Results' : chosenTab.value;
  const chosen = useSignal<number | null>(null);
  const attempt = Math.min(chosen.value ?? task.attempt, task.attempt);
  const logOf = useMemo(() => createLog(attempt), [attempt]);
  const items = useMemo(() => logOf(frames), [frames, logOf]);
  return (
    <div class="task-body">
      <section class="task-main" aria-label="Log and results">
        <div class="tabs" role="tablist">
          {tabs
            .filter((name) => name !== 'Changes' || hasChanges)
            .map((name) => (
              <button
                key={name}
                type="button"
                role="tab"
                aria-selected={tab === name}
                onClick={() => {
                  chosenTab.value = name;
                }}
              >
                {name}
              </button>
            ))}
          {task.attempt > 1 && tab === 'Log' && (
            <AttemptChoice
              attempts={task.attempt}
              shown={attempt}
              choose={(next) => {
                chosen.value = next;
              }}
            />
          )}
        </div>
        {tab === 'Log' && (
          <Log
            items={items}
            missing={history.missing.value}
            isRead={history.isRead.value}
            task={task}
          />
        )}
        {tab === 'Changes' && <ChangesSoFar task={task} />}
        {tab === 'Results' && <Results task={task} />}
        {tab === 'Description' && <Description task={task} />}
      </section>
      <Side task={task} shown={shown} />
    </div>
  );
};
