import { Fragment } from 'preact';
import type { Recording } from '../../src/actors/journal/replay/recording.ts';
import { parts } from '../data/later-parts.ts';
import { dateAndTime, numbered } from '../model/format.ts';
import { Icon, type IconName, Mark } from '../parts/icon.tsx';
import { machinesPath, route, taskPath, type View } from '../shell/router.ts';
import { DiffView } from '../views/diff/diff-view.tsx';
import { AgentChart } from '../views/machines/agent-chart.tsx';
import { Machines } from '../views/machines/machines.tsx';
import { TaskPage } from '../views/task/task-page.tsx';
import { missingIn } from './recorded-source.ts';

parts.AgentChart = AgentChart;

const views = { task: TaskPage, machines: Machines, diff: DiffView } as const;
type RecordedView = keyof typeof views;

const isView = (view: View): view is RecordedView => view in views;

const linksOf = ({
  task: { task_id: id },
  changes,
}: Recording): readonly (readonly [RecordedView, string, IconName, string])[] => [
  ['task', 'Task', 'board', taskPath(id)],
  ['machines', 'Machines', 'machine', machinesPath(id)],
  ...(changes === null ? [] : [['diff', 'Changes', 'merge', taskPath(id, 'diff')] as const]),
];

const TopBar = ({ recording, view }: { recording: Recording; view: RecordedView }) => (
  <header class="top">
    <span class="project">
      <Mark />
      <span class="cut">{recording.project}</span>
    </span>
    <nav aria-label="Views">
      {linksOf(recording).map(([name, title, icon, path]) => (
        <span key={name} class="nav-item">
          <a href={path} aria-current={view === name ? 'page' : undefined}>
            <span class="nav-icon">
              <Icon name={icon} />
            </span>
            {title}
          </a>
        </span>
      ))}
    </nav>
    <div class="top-end">
      <span class="cut">
        <span class="quiet">
          <span class="recorded-word">Recording, </span>exported
        </span>{' '}
        {dateAndTime(Date.parse(recording.made_at))}
      </span>
    </div>
  </header>
);

const isOver = ({ status }: Recording['task']): boolean =>
  ['complete', 'failed', 'cancelled'].includes(status);

const About = ({ recording }: { recording: Recording }) => {
  const { head, task } = recording;
  const missing = missingIn(recording);
  return (
    <p class="about-recording small">
      <span>{numbered(head?.entries ?? 0, 'journal entry', 'journal entries')}</span>
      {!isOver(task) && <span class="tone-need">not over when it was exported</span>}
      {missing !== null && <span class="tone-need">{missing}</span>}
      <span class="quiet">
        Check this file: <code>agent replay --verify {task.task_id}.html</code>
      </span>
    </p>
  );
};

/** An exported task: the views of the page that need no server. */
export const RecordedShell = ({ recording }: { recording: Recording }) => {
  const view = isView(route.value.view) ? route.value.view : 'task';
  const Current = views[view];
  const id = recording.task.task_id;
  return (
    <>
      <TopBar recording={recording} view={view} />
      <About recording={recording} />
      <main class={`view view-${view}`}>
        <Fragment key={view}>
          <Current taskId={id} />
        </Fragment>
      </main>
    </>
  );
};
