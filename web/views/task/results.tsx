import type { TaskView } from '../../data/tasks.ts';
import { Cause } from '../../parts/cause.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/prose.tsx';
import { taskPath } from '../../shell/router.ts';

const Comments = ({ task }: { task: TaskView }) => {
  const comments = task.review?.comments ?? [];
  if (comments.length === 0) return null;
  return (
    <>
      <h2>Comments</h2>
      <ul class="plain">
        {comments.map(({ id, path, line, text, answer, open }) => (
          <li key={id} class="result-comment">
            <Icon name={open ? 'pencil' : 'check'} tone={open ? 'need' : 'done'} />
            <span>
              <code>
                {path}
                {line === undefined ? '' : `:${line}`}
              </code>{' '}
              <span class="quiet">{text}</span> {answer ?? ''}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
};

const Changes = ({ task: { work, task_id, pull_request } }: { task: TaskView }) =>
  work === undefined ? null : (
    <>
      <h2>Changes</h2>
      {work.branch !== undefined && (
        <p>
          <a href={taskPath(task_id, 'diff')}>
            {work.files} {work.files === 1 ? 'file' : 'files'}
          </a>
          , <span class="tone-done">+{work.insertions}</span>{' '}
          <span class="tone-fail">−{work.deletions}</span> on <code>{work.branch}</code>
          {work.discarded_at === undefined
            ? work.merged_at === undefined
              ? pull_request?.state === 'merged'
                ? `. Merged at the forge, #${pull_request.number}.`
                : '. Not merged.'
              : `. Merged${work.tested === undefined ? '' : `, tested with ${work.tested.commands.join(', ')}`}.`
            : '. Discarded.'}
        </p>
      )}
      {(work.notes ?? []).map((note) => (
        <p key={note} class="line tint-need tone-need">
          {note}
        </p>
      ))}
    </>
  );

export const Results = ({ task }: { task: TaskView }) => {
  const { result, error, results_path: path } = task;
  return (
    <div class="text-block">
      {result === undefined && error === undefined && task.work === undefined && (
        <p class="quiet">
          {task.status === 'complete'
            ? 'No agent wrote results.'
            : 'There are no results yet. The agent writes them when it ends.'}
        </p>
      )}
      {result !== undefined && (
        <>
          <h2>Results</h2>
          <Prose text={result} />
        </>
      )}
      {error !== undefined && (
        <>
          <h2>Why it stopped</h2>
          <Cause error={error} />
        </>
      )}
      <Comments task={task} />
      <Changes task={task} />
      {path !== undefined && (
        <p class="quiet small">
          The whole results are in <code>{path}</code>
        </p>
      )}
    </div>
  );
};
