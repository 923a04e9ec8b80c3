import { useSignal } from '@preact/signals';
import { tasks } from '../../data/tasks.ts';
import { numbered } from '../../model/format.ts';
import { shownMachine } from '../../model/moments.ts';
import { heldUpBy, needing } from '../../model/order.ts';
import { isMerging, lookOf } from '../../model/state.ts';
import { MergeAll } from '../../parts/merge-all.tsx';
import { Empty, Problem } from '../../parts/notice.tsx';
import { NotifyChoice } from '../../parts/notify-choice.tsx';
import { RunAll } from '../../parts/run-all.tsx';
import { pathOf } from '../../shell/router.ts';
import { DecidedList } from './decided.tsx';
import { NeedRow } from './need-row.tsx';

/** More rows are drawn when they are asked for. */
const rowsAtOnce = 50;

const NothingNeeded = () => {
  const message = useSignal<string | null>(null);
  const all = [...tasks.value.values()];
  const inColumn = (...columns: readonly string[]): number =>
    all.filter((task) => columns.includes(lookOf(task).column)).length;
  const merging = all.filter(isMerging).length;
  const [working, waiting] = [inColumn('working') - merging, inColumn('slot', 'dependency')];
  if (all.length === 0)
    return (
      <Empty title="No tasks in this project yet">
        <p>A task is a line of text. An agent works on it; nothing is merged until you do it.</p>
        <a class="button" href={pathOf('new')}>
          New task
        </a>
      </Empty>
    );
  return (
    <Empty title="Nothing needs you.">
      <p>
        {numbered(working, 'agent works', 'agents work')},{' '}
        {numbered(waiting, 'task waits', 'tasks wait')}
        {merging > 0 && `, ${numbered(merging, 'merge is', 'merges are')} tested`}. The title of
        this tab counts what comes.
      </p>
      {working === 0 && waiting > 0 && <RunAll message={message} />}
      <Problem message={message} />
    </Empty>
  );
};

export const NeedsYou = () => {
  const shown = useSignal(rowsAtOnce);
  const message = useSignal<string | null>(null);
  const rows = needing(tasks.value);
  const merging = [...tasks.value.values()].filter(isMerging).length;
  const held = heldUpBy(
    rows.map(({ task_id }) => task_id),
    tasks.value,
  );
  return (
    <section class="page page-needs">
      <div>
        <header class="view-head">
          <h1>Needs you</h1>
          <span class="quiet">
            {rows.length === 0
              ? ''
              : `${numbered(rows.length, 'task')}, what waits now comes first`}
          </span>
          {merging > 0 && (
            <a
              class="small"
              href={pathOf('machines')}
              onClick={() => {
                shownMachine.value = 'mergeQueue';
              }}
            >
              {numbered(merging, 'merge')} in the queue
            </a>
          )}
          <MergeAll message={message} />
          <NotifyChoice />
          <span class="keys" aria-hidden="true">
            <kbd>j</kbd> <kbd>k</kbd> move <kbd>↵</kbd> open the task
          </span>
        </header>
        <Problem message={message} />
        {rows.length === 0 ? (
          <NothingNeeded />
        ) : (
          <ul class="needs">
            {rows.slice(0, shown.value).map((task) => (
              <NeedRow key={task.task_id} task={task} holds={held.get(task.task_id) ?? 0} />
            ))}
          </ul>
        )}
        {rows.length > shown.value && (
          <button
            type="button"
            class="link"
            onClick={() => {
              shown.value += rowsAtOnce;
            }}
          >
            Show {Math.min(rowsAtOnce, rows.length - shown.value)} more of {rows.length}
          </button>
        )}
      </div>
      <DecidedList />
    </section>
  );
};
