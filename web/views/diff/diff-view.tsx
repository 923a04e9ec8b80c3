import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type NewComment, review } from '../../data/actions.ts';
import { call, isRecorded } from '../../data/source.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { filesIn } from '../../model/diff.ts';
import { numbered } from '../../model/format.ts';
import { isToReview } from '../../model/state.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { MergeButton } from '../../parts/merge-button.tsx';
import { NoTask } from '../../parts/no-task.tsx';
import { Empty, Problem } from '../../parts/notice.tsx';
import { StatusPill } from '../../parts/status.tsx';
import { go, taskPath } from '../../shell/router.ts';
import { FileDiff } from './file-diff.tsx';
import { Files } from './file-list.tsx';
import { pageOf } from './file-pages.tsx';
import { setViewed, viewedPaths } from './viewed.ts';
import { AllChanges } from './whole-comments.tsx';

interface Changes {
  readonly attempt: number;
  readonly patch: string;
  readonly guarded: readonly string[];
  /** Of a recording: files that are not in it. */
  readonly files_left_out?: number;
}

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
        {task.work !== undefined && (
          <p class="quiet small">
            Attempt {task.attempt} on <code>{task.work.branch}</code>
          </p>
        )}
      </div>
      {!isRecorded() && (
        <div class="task-actions">
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

const useChanges = (taskId: string, stamp: string, fail: (message: string) => void) => {
  const changes = useSignal<Changes | null>(null);
  // Another attempt has another diff.
  useEffect(() => {
    call<Changes>('diff', { task_id: taskId }).then(
      (found) => {
        changes.value = found;
      },
      (error: Error) => fail(error.message),
    );
  }, [taskId, stamp, fail, changes]);
  return changes.value;
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
  const changes = useChanges(taskId, `${task?.attempt} ${task?.status}`, fail);
  const files = useMemo(() => filesIn(changes?.patch ?? ''), [changes]);
  const wanted = words.value.trim().toLowerCase();
  const found = useMemo(
    () => files.filter(({ path }) => path.toLowerCase().includes(wanted)),
    [files, wanted],
  );
  const page = useMemo(() => pageOf(found, first.value), [found, first.value]);
  const attempt = changes?.attempt ?? 0;
  const seen = viewedPaths(taskId, attempt);
  const viewed = new Set(files.flatMap(({ path }) => (seen.has(path) ? path : [])));
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
      {changes?.files_left_out !== undefined && changes.files_left_out > 0 && (
        <p class="line tint-need tone-need">
          {numbered(changes.files_left_out, 'changed file is', 'changed files are')} too large for
          this recording.
        </p>
      )}
      {changes !== null && files.length === 0 && <Empty title="This attempt changed no file." />}
      {files.length > 0 && (
        <div class="diff">
          <Files
            all={files}
            found={found}
            words={words}
            page={page}
            first={first}
            pending={pending.value}
            viewed={viewed}
          />
          <div class="diff-files" key={`${page.from} ${wanted}`}>
            <AllChanges given={task.review?.comments ?? []} pending={pending} />
            {page.files.map(({ file, isFolded }, index) => (
              <FileDiff
                key={file.path}
                isFolded={isFolded}
                id={`file-${index}`}
                file={file}
                given={task.review?.comments ?? []}
                pending={pending}
                isViewed={viewed.has(file.path)}
                onViewed={(isViewed) => setViewed(taskId, attempt, file.path, isViewed)}
              />
            ))}
          </div>
        </div>
      )}
    </article>
  );
};
