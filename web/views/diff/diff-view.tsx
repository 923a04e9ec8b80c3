import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { type NewComment, review } from '../../data/actions.ts';
import { isRecorded } from '../../data/source.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { numbered } from '../../model/format.ts';
import { isToReview } from '../../model/state.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { MergeButton } from '../../parts/merge-button.tsx';
import { NoTask } from '../../parts/no-task.tsx';
import { Empty, Problem } from '../../parts/notice.tsx';
import { PublishButton, PullRequestLine } from '../../parts/pull-request.tsx';
import { StatusPill } from '../../parts/status.tsx';
import { go, taskPath } from '../../shell/router.ts';
import { FileDiff } from './file-diff.tsx';
import { Files } from './file-list.tsx';
import { isRead, type ListedFile, useChanges } from './use-changes.ts';
import { setViewed, viewedPaths } from './viewed.ts';
import { AllChanges } from './whole-comments.tsx';

interface HeadProps {
  readonly task: TaskView;
  readonly pending: readonly NewComment[];
  readonly fail: (message: string) => void;
}

/** Merge is primary when no comment is pending, else sending back is. */
const Head = ({ task, pending, fail }: HeadProps) => {
  const sendBack = async (): Promise<void> => {
    await review(task, 'request_changes', pending);
    go(taskPath(task.task_id));
  };
  const isOver = task.status !== 'started' && task.status !== 'queued';
  return (
    <header class="task-head diff-head">
      <div class="task-name">
        <p class="crumbs small">
          <a href={taskPath(task.task_id)}>Task</a>
          <Icon name="right" />
          <span class="id">{task.task_id}</span>
        </p>
        <div class="task-title">
          <h1>{task.title}</h1>
          <StatusPill task={task} />
        </div>
        {task.work?.branch !== undefined && (
          <p class="quiet small">
            Attempt {task.attempt} on <code>{task.work.branch}</code>
          </p>
        )}
        <PullRequestLine task={task} />
      </div>
      {!isRecorded() && (
        <div class="task-actions">
          <PublishButton task={task} fail={fail} />
          {isToReview(task) && (
            <MergeButton
              kind={pending.length === 0 ? 'primary' : 'plain'}
              task={task}
              fail={fail}
            />
          )}
          {isOver && (
            <Button
              kind={pending.length === 0 ? 'plain' : 'primary'}
              hotkey="s"
              whyNot={
                pending.length === 0 ? 'Comment on a line, a file or all changes first' : null
              }
              onPress={sendBack}
              onError={fail}
            >
              {pending.length === 0
                ? 'Send back'
                : `Send back with ${numbered(pending.length, 'comment')}`}
            </Button>
          )}
        </div>
      )}
    </header>
  );
};

/** Counts all files where they have been read, else those of the saved work. */
const sumsOf = (all: readonly ListedFile[], work: TaskView['work']) => {
  const read = all.filter(isRead);
  if (read.length < all.length)
    return { added: work?.insertions ?? 0, removed: work?.deletions ?? 0 };
  const sum = (key: 'added' | 'removed'): number =>
    read.reduce((total, file) => total + file[key], 0);
  return { added: sum('added'), removed: sum('removed') };
};

export const DiffView = ({ taskId }: { taskId: string }) => {
  const problem = useSignal<string | null>(null);
  const pending = useSignal<readonly NewComment[]>([]);
  const [first, words] = [useSignal(0), useSignal('')];
  const task = tasks.value.get(taskId);
  const fail = useMemo(
    () => (message: string) => {
      problem.value = message;
    },
    [problem],
  );
  const { changes, all, found, from, listed, byPath } = useChanges({
    ...{ task, taskId, words: words.value, first: first.value, fail },
  });
  const sums = useMemo(() => sumsOf(all, task?.work), [all, task?.work]);
  const attempt = changes?.attempt ?? 0;
  const seen = viewedPaths(taskId, attempt);
  const viewed = new Set(all.flatMap(({ path }) => (seen.has(path) ? path : [])));
  if (task === undefined) return <NoTask id={taskId} />;
  return (
    <article class="task">
      <Head task={task} pending={pending.value} fail={fail} />
      <Problem message={problem} />
      {changes !== null && changes.guarded.length > 0 && (
        <p class="line tint-need tone-need">
          <Icon name="shield" />
          <span>Other programs run or trust what changed here: {changes.guarded.join(', ')}</span>
        </p>
      )}
      {attempt === task.attempt &&
        task.work?.notes?.map((note) => (
          <p key={note} class="line tint-need tone-need">
            {note}
          </p>
        ))}
      {changes?.files_left_out !== undefined && changes.files_left_out > 0 && (
        <p class="line tint-need tone-need">
          {numbered(changes.files_left_out, 'changed file is', 'changed files are')} too large for
          this recording.
        </p>
      )}
      {changes !== null && all.length === 0 && <Empty title="This attempt changed no file." />}
      {all.length > 0 && (
        <div class="diff">
          <Files
            {...{ sums, words, from, listed, byPath, first, viewed }}
            total={all.length}
            found={found.length}
            pending={pending.value}
          />
          <div class="diff-files" key={`${from} ${words.value}`}>
            <AllChanges given={task.review?.comments ?? []} pending={pending} />
            {listed.map(({ path }, index) => {
              const read = byPath.get(path);
              return read === undefined ? null : (
                <FileDiff
                  key={path}
                  {...read}
                  id={`file-${index}`}
                  given={task.review?.comments ?? []}
                  pending={pending}
                  isViewed={viewed.has(path)}
                  onViewed={(isViewed) => setViewed(taskId, attempt, path, isViewed)}
                />
              );
            })}
            {listed.length > 0 && byPath.size === 0 && <p class="line quiet">Reading the lines…</p>}
          </div>
        </div>
      )}
    </article>
  );
};
