import { useSignal } from '@preact/signals';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { roles, slots } from '../../data/totals.ts';
import { numbered } from '../../model/format.ts';
import { columnsOf, groupsOf } from '../../model/order.ts';
import { matches } from '../../model/search.ts';
import { type Column, isMerging } from '../../model/state.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { Empty, Problem } from '../../parts/notice.tsx';
import { Rows } from '../../parts/rows.tsx';
import { RunAll } from '../../parts/run-all.tsx';
import { TaskLine } from '../../parts/task-link.tsx';
import { CreateForm } from '../create/create-form.tsx';
import { Card } from './card.tsx';
import { type Selected, SelectionActions, Tick } from './selection.tsx';

interface ColumnHead<Name = string> {
  readonly column: Name;
  readonly name: string;
  readonly icon: IconName;
  readonly tone: string;
  readonly fact: (all: readonly TaskView[]) => string;
}

const columns: readonly ColumnHead<Column>[] = [
  {
    ...{ column: 'dependency', name: 'Waiting for dependency', icon: 'dashed', tone: 'wait' },
    fact: (all) => {
      const resting = all.filter(({ phase }) => phase === 'waiting_for_run').length;
      const waiting = all.length - resting;
      if (waiting === 0) return `${resting} not asked to run`;
      const starts = `${waiting} ${waiting === 1 ? 'starts' : 'start'} when these are complete`;
      return resting === 0 ? starts : `${starts}, ${resting} not asked to run`;
    },
  },
  {
    ...{ column: 'slot', name: 'Queued', icon: 'clock', tone: 'wait' },
    fact: (all) => {
      const resting = all.filter(({ phase }) => phase === 'waiting_for_run').length;
      return `${resting} not asked to run, ${numbered(all.length - resting, 'waits', 'wait')}`;
    },
  },
  {
    ...{ column: 'working', name: 'Working', icon: 'prompt', tone: 'work' },
    fact: (all) => {
      const merging = all.filter(isMerging).length;
      const used = `${all.length - merging} of ${slots.value} slots`;
      return slots.value === null ? '' : `${used}${merging > 0 ? `, ${merging} merging` : ''}`;
    },
  },
  {
    ...{ column: 'needs', name: 'Needs you', icon: 'question', tone: 'need' },
    fact: () => 'what waits now comes first',
  },
  {
    ...{ column: 'review', name: 'To review', icon: 'merge', tone: 'rev' },
    fact: (all) => `${all.length} ready to merge`,
  },
  {
    ...{ column: 'forge', name: 'In review', icon: 'pull', tone: 'rev' },
    fact: (all) => numbered(all.length, 'pull request'),
  },
  {
    ...{ column: 'done', name: 'Done', icon: 'check', tone: 'done' },
    fact: () => 'newest first',
  },
];

/** A column with more tasks has rows instead of cards. */
const cardsAtMost = 30;

interface ColumnProps {
  readonly head: ColumnHead;
  readonly all: readonly TaskView[];
  readonly selected: Selected;
}

const ColumnView = ({ head, all, selected }: ColumnProps) => {
  const isLong = all.length > cardsAtMost;
  const draw = (task: TaskView) => {
    const { task_id: id, title } = task;
    const drawn = isLong ? <TaskLine key={id} id={id} /> : <Card key={id} task={task} />;
    if (selected.value === null) return drawn;
    return (
      <div class="tickable" key={id}>
        <Tick ids={[id]} name={title} selected={selected} />
        {drawn}
      </div>
    );
  };
  return (
    <section class={`column column-${head.column}`} aria-label={head.name}>
      <header>
        <Tick
          ids={all.map(({ task_id }) => task_id)}
          name={`all of ${head.name}`}
          selected={selected}
        />
        <Icon name={head.icon} tone={head.tone} />
        <h2>{head.name}</h2>
        <span class="quiet">{all.length.toLocaleString('en')}</span>
      </header>
      <p class="quiet small column-fact">{all.length === 0 ? ' ' : head.fact(all)}</p>
      {isLong ? (
        <Rows
          total={all.length}
          row={(index) => {
            const task = all[index];
            return task === undefined ? null : draw(task);
          }}
        />
      ) : (
        <div class="cards">{all.map(draw)}</div>
      )}
    </section>
  );
};

type Grouping = 'fact' | 'role' | 'label';

const headOf = (name: string): ColumnHead => ({
  ...{ column: 'group', name, icon: 'dashed', tone: 'wait' },
  fact: () => ' ',
});

/** The columns in the order of the board, each task in the order of its fact. */
const drawnColumns = (
  by: Grouping,
  wanted: (task: TaskView) => boolean,
): readonly { readonly head: ColumnHead; readonly all: readonly TaskView[] }[] => {
  const found = columnsOf(tasks.value);
  const facts = columns
    .map((head) => ({ head, all: found[head.column].filter(wanted) }))
    // Most projects have no pull requests.
    .filter(({ head, all }) => head.column !== 'forge' || all.length > 0);
  if (by === 'fact') return facts;
  const shown = facts.flatMap(({ all }) => all);
  return groupsOf(shown, by).map(([name, all]) => ({ head: headOf(name), all }));
};

const NoTasks = () => (
  <div class="first">
    <h1>No tasks in this project yet</h1>
    <p class="quiet">
      A task is a line of text. An agent works on it, and nothing is merged until you merge it.
    </p>
    <CreateForm />
    <p class="quiet small">or in a terminal</p>
    <pre class="box sunken">
      {
        'agent create "Fix the login form" --role engineer --run\nagent create "Test the login form" --role tester --deps bd-a1b2'
      }
    </pre>
  </div>
);

export const Board = () => {
  const role = useSignal('');
  const words = useSignal('');
  const by = useSignal<Grouping>('fact');
  const message = useSignal<string | null>(null);
  const selected: Selected = useSignal<ReadonlySet<string> | null>(null);
  const all = tasks.value;
  if (all.size === 0) return <NoTasks />;
  const wanted = (task: TaskView): boolean =>
    (role.value === '' || task.role === role.value) &&
    (words.value.trim() === '' || matches(task, words.value.trim()));
  const shown = [...all.values()].filter(wanted).length;
  const clear = (): void => {
    role.value = '';
    words.value = '';
  };
  return (
    <section class="page page-board">
      <header class="view-head">
        <h1>Board</h1>
        <span class="quiet">
          {shown === all.size
            ? numbered(all.size, 'task')
            : `${shown} of ${numbered(all.size, 'task')}`}
        </span>
        <span class="view-actions">
          <input
            type="text"
            aria-label="Filter by words"
            placeholder="Filter"
            value={words.value}
            onInput={({ currentTarget }) => {
              words.value = currentTarget.value;
            }}
          />
          <select
            aria-label="Role"
            value={role.value}
            onChange={({ currentTarget }) => {
              role.value = currentTarget.value;
            }}
          >
            <option value="">Role: any</option>
            {roles.value.map((each) => (
              <option key={each.role} value={each.role}>
                {each.role}
              </option>
            ))}
          </select>
          <select
            aria-label="Columns"
            value={by.value}
            onChange={({ currentTarget }) => {
              by.value = currentTarget.value as Grouping;
            }}
          >
            <option value="fact">Columns: state</option>
            <option value="role">Columns: role</option>
            <option value="label">Columns: label</option>
          </select>
          <SelectionActions selected={selected} isShown={wanted} message={message} />
          {selected.value === null && <RunAll message={message} />}
        </span>
      </header>
      <Problem message={message} />
      {shown === 0 ? (
        <Empty title="No task matches.">
          <button type="button" class="button" onClick={clear}>
            Show all {all.size}
          </button>
        </Empty>
      ) : (
        <div class={`board ${by.value === 'fact' ? '' : 'grouped'}`}>
          {drawnColumns(by.value, wanted).map((column) => (
            <ColumnView key={column.head.name} {...column} selected={selected} />
          ))}
        </div>
      )}
    </section>
  );
};
