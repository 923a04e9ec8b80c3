import { parts } from '../../data/later-parts.ts';
import { isRecorded } from '../../data/source.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { count, duration, money } from '../../model/format.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { TaskLine } from '../../parts/task-link.tsx';
import type { Shown } from '../machines/moment.ts';

type AttemptView = NonNullable<TaskView['attempts']>[number];

const endings: Readonly<Record<string, readonly [IconName, string]>> = {
  complete: ['check', 'done'],
  failed: ['cross', 'fail'],
  cancelled: ['struck', 'wait'],
};

/** Work that people commented on, when another attempt followed. */
const isSentBack = ({ attempt, review }: TaskView, of: AttemptView): boolean =>
  of.status === 'complete' &&
  of.attempt < attempt &&
  review?.comments.some((comment) => comment.attempt === of.attempt) === true;

const endingOf = (task: TaskView, of: AttemptView): readonly [IconName, string, string] => {
  if (isSentBack(task, of)) return ['left', 'rev', 'sent back'];
  const [icon, tone] = endings[of.status] ?? ['circle', 'wait'];
  return [icon, tone, of.status];
};

const Attempts = ({ task }: { task: TaskView }) =>
  (task.attempts ?? []).length === 0 ? null : (
    <section>
      <h2>Attempts</h2>
      <table>
        <thead>
          <tr>
            <th>#</th>
            <th>Ended</th>
            <th class="number">Time</th>
            <th class="number">In, out</th>
            <th class="number">Cost</th>
          </tr>
        </thead>
        <tbody>
          {task.attempts?.toReversed().map((each) => {
            const [icon, tone, word] = endingOf(task, each);
            return (
              <tr key={each.attempt}>
                <td>{each.attempt}</td>
                <td>
                  <Icon name={icon} tone={tone} /> {word}
                  {each.merged_at === undefined ? '' : ', merged'}{' '}
                  <span class="quiet">{each.role}</span>
                </td>
                <td class="number">{duration(each.seconds * 1_000)}</td>
                <td class="number">
                  {count(each.input_tokens)}, {count(each.output_tokens)}
                </td>
                <td class="number">{each.cost_usd === undefined ? '–' : money(each.cost_usd)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );

const Usage = ({ task: { usage, attempt } }: { task: TaskView }) =>
  attempt === 0 ? null : (
    <section>
      <h2>Usage of attempt {attempt}</h2>
      <table>
        <tbody>
          {(
            [
              ['Model calls', usage.model_calls],
              ['Tool calls', usage.tool_calls],
              ['Tokens in', count(usage.input_tokens)],
              ['Tokens out', count(usage.output_tokens)],
            ] as const
          ).map(([name, value]) => (
            <tr key={name}>
              <td>{name}</td>
              <td class="number">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );

const shownAtMost = 20;
const List = ({ name, ids, none }: { name: string; ids: readonly string[]; none: string }) => (
  <section>
    <h2>{name}</h2>
    {ids.length === 0 && <p class="quiet small">{none}</p>}
    {ids.slice(0, shownAtMost).map((id) => (
      <TaskLine key={id} id={id} />
    ))}
    {ids.length > shownAtMost && <p class="quiet small">{ids.length - shownAtMost} more</p>}
  </section>
);

/** The chart of an agent at work, attempts, usage and the tasks around this one. */
export const Side = ({ task, shown }: { task: TaskView; shown: Shown }) => {
  const dependents = [...tasks.value.values()]
    .filter(({ dependencies }) => dependencies.includes(task.task_id))
    .map(({ task_id }) => task_id);
  return (
    <aside class="task-side" aria-label="About the task">
      {task.status === 'started' && <parts.AgentChart id={task.task_id} shown={shown} />}
      <Attempts task={task} />
      <Usage task={task} />
      <List name="Waits for" ids={task.dependencies} none="It waits for no other task." />
      {!isRecorded() && (
        <List name="Needed by" ids={dependents} none="No other task waits for it." />
      )}
    </aside>
  );
};
