import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { isRecorded, openHistory } from '../../data/source.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { health, readHealth } from '../../data/totals.ts';
import {
  chartOf,
  type Machine,
  machines,
  type Scene,
  sceneAt,
  sceneIn,
} from '../../model/chart.ts';
import { Empty } from '../../parts/notice.tsx';
import { go, machinesPath, pathOf, taskAtPath } from '../../shell/router.ts';
import { ChartDrawing } from './chart-drawing.tsx';
import { Facts } from './facts.tsx';
import { useMoment } from './moment.ts';
import { Scrubber } from './scrubber.tsx';

const names: Readonly<Record<Machine, string>> = {
  task: 'Task',
  agent: 'Agent',
  supervisor: 'Supervisor',
};

const choicesAtMost = 200;
const supervisorEveryMs = 2_000;

/** Tasks that ran or run, the latest change first. */
const choices = (): readonly TaskView[] =>
  [...tasks.value.values()]
    .sort((one, other) => (one.updated_at < other.updated_at ? 1 : -1))
    .slice(0, choicesAtMost);

const Picker = ({ taskId }: { taskId: string }) => (
  <label class="picker">
    <span class="hidden">Task</span>
    <select value={taskId} onChange={({ currentTarget }) => go(machinesPath(currentTarget.value))}>
      {choices().map(({ task_id, title }) => (
        <option key={task_id} value={task_id}>
          {task_id} {title}
        </option>
      ))}
    </select>
  </label>
);

const Title = ({ taskId }: { taskId: string }) => (
  <span class="cut">
    <span class="id">{taskId}</span> {tasks.value.get(taskId)?.title}
  </span>
);

const Legend = () => (
  <p class="chart-legend quiet small">
    <span class="swatch here" /> here <span class="swatch next" /> may be next{' '}
    <span class="swatch was" /> was here <span class="swatch" /> not yet · Ticks: exits that nearly
    every state has; hold the pointer over a state to read them
  </p>
);

const Body = ({ taskId }: { taskId: string }) => {
  const history = useMemo(() => openHistory(taskId), [taskId]);
  useEffect(() => history.close, [history]);
  const machine = useSignal<Machine>('task');
  const shown = useMoment(history, (seq) => machinesPath(taskId, seq));
  const { all, index, moment, previous, isLatest } = shown;
  const chart = chartOf(machine.value);
  const isNow = isLatest && !isRecorded();
  const supervisor = isNow ? (health.value?.checks['supervisor']?.state ?? null) : null;
  const sceneOf = (each: Machine): Scene =>
    each === 'supervisor' ? sceneIn(supervisor) : sceneAt(all, each, moment?.seq ?? 0);
  const scene = sceneOf(machine.value);
  useEffect(() => {
    if (machine.value !== 'supervisor' || !isNow) return undefined;
    const read = (): void => void readHealth().catch(() => null);
    read();
    const timer = setInterval(read, supervisorEveryMs);
    return () => clearInterval(timer);
  }, [machine.value, isNow]);
  return (
    <>
      <header class="view-head">
        <h1>Machines</h1>
        {isRecorded() ? <Title taskId={taskId} /> : <Picker taskId={taskId} />}
        <a href={taskAtPath(taskId, isLatest ? null : (moment?.seq ?? null))}>Task</a>
        <div class="segments" role="tablist" aria-label="Machine">
          {machines.map((each) => (
            <button
              key={each}
              type="button"
              role="tab"
              aria-selected={machine.value === each}
              onClick={() => {
                machine.value = each;
              }}
            >
              {names[each]} <span class="mono quiet">{sceneOf(each).here ?? ''}</span>
            </button>
          ))}
        </div>
      </header>
      <div class="machine">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by the keyboard */}
        <section class="machine-chart" tabIndex={0} aria-label="Statechart">
          <ChartDrawing chart={chart} scene={scene} name={machine.value} />
          <Legend />
          {machine.value === 'supervisor' && (
            <p class="quiet small">
              {isNow
                ? 'One supervisor serves all tasks. It is lit as it is now.'
                : 'One supervisor serves all tasks; the journal of a task does not hold its states.'}
            </p>
          )}
        </section>
        <Facts
          taskId={taskId}
          chart={chart}
          scene={scene}
          moment={moment}
          previous={previous}
          place={all.length === 0 ? '' : `entry ${index + 1} of ${all.length}`}
          isLive={isNow}
        />
      </div>
      <Scrubber shown={shown} />
    </>
  );
};

/** The statecharts, lit by one task. */
export const Machines = ({ taskId }: { taskId: string }) => {
  const [latest] = choices();
  const id = taskId === '' ? latest?.task_id : taskId;
  if (id === undefined || !tasks.value.has(id))
    return (
      <Empty title={id === undefined ? 'No tasks yet' : `No task ${id} in this project.`}>
        <p>The charts light up when a task runs.</p>
        <a class="button" href={pathOf('new')}>
          New task
        </a>
      </Empty>
    );
  return (
    <section class="page page-machines">
      <Body key={id} taskId={id} />
    </section>
  );
};
