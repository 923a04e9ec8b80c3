import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { TaskView } from '../../data/tasks.ts';
import { numbered } from '../../model/format.ts';
import { Problem } from '../../parts/notice.tsx';
import { taskPath } from '../../shell/router.ts';
import { Counts } from '../diff/counts.tsx';
import { useChanges } from '../diff/use-changes.ts';

/** What a running attempt has changed until its last turn. */
export const ChangesSoFar = ({ task }: { task: TaskView }) => {
  const problem = useSignal<string | null>(null);
  const fail = useMemo(
    () => (message: string) => {
      problem.value = message;
    },
    [problem],
  );
  const { changes, all, listed, byPath } = useChanges({
    task,
    taskId: task.task_id,
    words: '',
    first: 0,
    fail,
  });
  const left = all.length - listed.length;
  return (
    <div class="text-block">
      <Problem message={problem} />
      {changes !== null && all.length === 0 && <p class="quiet">No file has changed yet.</p>}
      <ul class="plain">
        {listed.map(({ path }) => {
          const file = byPath.get(path)?.file;
          return (
            <li key={path}>
              <code>{path}</code> {file !== undefined && <Counts {...file} />}
            </li>
          );
        })}
      </ul>
      {left > 0 && <p class="quiet">And {numbered(left, 'file')} more.</p>}
      {all.length > 0 && (
        <p>
          <a href={taskPath(task.task_id, 'diff')}>See the lines</a>
        </p>
      )}
    </div>
  );
};
