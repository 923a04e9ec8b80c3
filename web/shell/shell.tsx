import { type ComponentType, Fragment } from 'preact';
import { useEffect } from 'preact/hooks';
import { parts } from '../data/later-parts.ts';
import { session } from '../data/session.ts';
import { isLoaded, tasks } from '../data/tasks.ts';
import { slots, spentToday } from '../data/totals.ts';
import { money, numbered } from '../model/format.ts';
import { lookOf } from '../model/state.ts';
import { Icon, type IconName, Mark } from '../parts/icon.tsx';
import { SignOut } from '../parts/sign-out.tsx';
import { Board } from '../views/board/board.tsx';
import { CreateView } from '../views/create/create-view.tsx';
import { EditView } from '../views/create/edit-view.tsx';
import { DiffView } from '../views/diff/diff-view.tsx';
import { NeedsYou } from '../views/needs-you/needs-you.tsx';
import { TaskPage } from '../views/task/task-page.tsx';
import { WorkflowPage } from '../views/workflow/workflow-page.tsx';
import { ConnectionLine, LiveDot } from './connection.tsx';
import { Help } from './help.tsx';
import { later } from './loaded.tsx';
import { needed } from './needed.ts';
import { followNeeds } from './notify.ts';
import { pathOf, route, type View } from './router.ts';
import { Search } from './search.tsx';

const links: readonly (readonly [View, string, IconName])[] = [
  ['needs-you', 'Needs you', 'inbox'],
  ['board', 'Board', 'board'],
  ['graph', 'Graph', 'graph'],
  ['machines', 'Machines', 'machine'],
  ['system', 'System', 'pulse'],
];

const views: Readonly<Record<View, ComponentType<{ taskId: string }>>> = {
  'needs-you': NeedsYou,
  board: Board,
  graph: later('Graph'),
  machines: later('Machines'),
  system: later('System'),
  task: TaskPage,
  diff: DiffView,
  edit: EditView,
  workflow: WorkflowPage,
  new: CreateView,
};

parts.Images = later('Images');
parts.AgentChart = later('AgentChart');

const Navigation = () => (
  <nav aria-label="Views">
    {links.map(([view, name, icon]) => (
      <span key={view} class="nav-item">
        <a href={pathOf(view)} aria-current={route.value.view === view ? 'page' : undefined}>
          <span class="nav-icon">
            <Icon name={icon} />
          </span>
          {name}
        </a>
        {view === 'needs-you' && needed.value.length > 0 && (
          <span class="count tone-need tint-need">
            <span class="hidden">tasks that need you: </span>
            {needed.value.length}
          </span>
        )}
      </span>
    ))}
  </nav>
);

const Slots = () => {
  if (slots.value === null) return null;
  const working = [...tasks.value.values()].filter(
    (task) => task.status === 'started' && lookOf(task).column === 'working',
  ).length;
  const used = Math.min(working, slots.value);
  return (
    <span class="slots">
      <span class="slot-boxes" aria-hidden="true">
        {Array.from({ length: Math.min(slots.value, 8) }, (_, index) => (
          <span key={`${index}`} class={index < used ? 'slot used' : 'slot'} />
        ))}
      </span>
      {used} of {slots.value} slots
    </span>
  );
};

const TopBar = () => {
  const current = session.value;
  const project = current.state === 'in' ? current.project : '';
  return (
    <header class="top">
      <a class="project" href={pathOf('board')} aria-label={project}>
        <Mark />
        <span class="cut">{project}</span>
      </a>
      <Navigation />
      <div class="top-end">
        <Search />
        <Slots />
        {spentToday.value !== null && <span class="spent">{money(spentToday.value)} today</span>}
        <LiveDot />
        <SignOut />
        <a class="button primary" href={pathOf('new')}>
          <Icon name="plus" />
          <span class="new-word">New task</span>
          <span class="key" aria-hidden="true">
            <kbd>c</kbd>
          </span>
        </a>
      </div>
    </header>
  );
};

const Loading = () => (
  <div class="loading" aria-busy="true">
    <span class="hidden">Reading the tasks</span>
    {[40, 72, 80, 56].map((width) => (
      <span key={width} style={{ width: `${width / 4}%` }} />
    ))}
  </div>
);

export const Shell = () => {
  const { view, taskId } = route.value;
  const count = needed.value.length;
  const project = session.value.state === 'in' ? session.value.project : '';
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}${project} – Agent Task Server`;
  }, [count, project]);
  useEffect(followNeeds, []);
  const Current = views[view];
  return (
    <>
      <p class="hidden" role="status">
        {numbered(count, 'task needs', 'tasks need')} you
      </p>
      <TopBar />
      <ConnectionLine />
      <main class={`view view-${view}`}>
        {isLoaded.value ? (
          <Fragment key={`${view} ${taskId}`}>
            <Current taskId={taskId} />
          </Fragment>
        ) : (
          <Loading />
        )}
      </main>
      <Help />
    </>
  );
};
