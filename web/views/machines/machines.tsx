import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { isRecorded, openHistory } from '../../data/source.ts';
import { queueFrames, type TaskView, tasks } from '../../data/tasks.ts';
import { health, readHealth } from '../../data/totals.ts';
import { chartOf, type Scene, sceneAt, sceneIn, scenePullRequest } from '../../model/chart.ts';
import { createMoments, type Machine, machines, shownMachine } from '../../model/moments.ts';
import { isMerging } from '../../model/state.ts';
import { Empty } from '../../parts/notice.tsx';
import { TaskLine } from '../../parts/task-link.tsx';
import { go, machinesPath, pathOf, taskAtPath } from '../../shell/router.ts';
import { ChartDrawing } from './chart-drawing.tsx';
import { Facts } from './facts.tsx';
import { useMoment } from './moment.ts';
import { Scrubber } from './scrubber.tsx';

const names: Readonly<Record<Machine, string>> = {
  task: 'Task',
  agent: 'Agent',
  supervisor: 'Supervisor',
  mergeQueue: 'Merge queue',
  pullRequest: 'Pull request',
};

/** These are not in the journal of a task. */
const ofAll: Readonly<Partial<Record<Machine, string>>> = {
  supervisor: 'One supervisor serves all tasks',
  mergeQueue: 'One queue merges the work of all tasks',
  pullRequest: 'It has a history of its own',
};

const choicesAtMost = 200;
const healthEveryMs = 2_000;

const isLive = ({ status }: TaskView): number => (status === 'started' ? 1 : 0);

/** Tasks at work first, then the latest change, as they are now. */
const choices = (): readonly TaskView[] =>
  [...tasks.peek().values()]
    .sort(
      (one, other) => isLive(other) - isLive(one) || (one.updated_at < other.updated_at ? 1 : -1),
    )
    .slice(0, choicesAtMost);

/** The choices are those of when it is opened: each entry of a journal would change their order. */
const Picker = ({ taskId }: { taskId: string }) => {
  const all = useSignal(choices());
  const read = (): void => {
    all.value = choices();
  };
  const own = tasks.peek().get(taskId);
  const isListed = all.value.some(({ task_id }) => task_id === taskId);
  const shown = own === undefined || isListed ? all.value : [own, ...all.value];
  return (
    <label class="picker">
      <span class="hidden">Task</span>
      <select
        value={taskId}
        onFocus={read}
        onPointerDown={read}
        onChange={({ currentTarget }) => go(machinesPath(currentTarget.value))}
      >
        {shown.map(({ task_id, title }) => (
          <option key={task_id} value={task_id}>
            {task_id} {title}
          </option>
        ))}
      </select>
    </label>
  );
};

const Title = ({ taskId }: { taskId: string }) => (
  <span class="cut">
    <span class="id">{taskId}</span> {tasks.value.get(taskId)?.title}
  </span>
);

const queueMoments = createMoments();
/** Lit by what the page has seen of it; before that, as the server says it is. */
const queueScene = (): Scene => {
  const moments = queueMoments(queueFrames.value);
  return moments.length === 0
    ? sceneIn(health.value?.checks['merges']?.state ?? null)
    : sceneAt(moments, 'mergeQueue', Number.POSITIVE_INFINITY);
};

/** The tasks in the queue. */
const InQueue = () => {
  const ids = [...tasks.value.values()].filter(isMerging).map(({ task_id }) => task_id);
  return (
    <>
      <h2>{ids.length === 0 ? 'Nothing is merged now' : 'In the queue'}</h2>
      {ids.slice(0, choicesAtMost).map((id) => (
        <TaskLine key={id} id={id} />
      ))}
    </>
  );
};

const Legend = () => (
  <p class="chart-legend quiet small">
    <span class="swatch here" /> here <span class="swatch next" /> may be next{' '}
    <span class="swatch was" /> was here <span class="swatch" /> not yet · Ticks: exits that nearly
    every state has; point at a state, or tap it, to read them
  </p>
);

const Body = ({ taskId }: { taskId: string }) => {
  const history = useMemo(() => openHistory(taskId), [taskId]);
  useEffect(() => history.close, [history]);
  const machine = shownMachine;
  useEffect(
    () => () => {
      machine.value = 'task';
    },
    [machine],
  );
  const shown = useMoment(history, (seq) => machinesPath(taskId, seq));
  const { all, index, moment, previous, isLatest } = shown;
  const chart = chartOf(machine.value);
  const isNow = isLatest && !isRecorded();
  const sceneOf = (each: Machine): Scene => {
    if (!(each in ofAll)) return sceneAt(all, each, moment?.seq ?? 0);
    if (!isNow) return sceneIn(null);
    if (each === 'pullRequest') return scenePullRequest(tasks.value.get(taskId)?.pull_request);
    return each === 'mergeQueue'
      ? queueScene()
      : sceneIn(health.value?.checks[each]?.state ?? null);
  };
  const hasPullRequest = tasks.value.get(taskId)?.pull_request !== undefined;
  const shownMachines = machines.filter((each) => each !== 'pullRequest' || hasPullRequest);
  const scene = sceneOf(machine.value);
  useEffect(() => {
    if (!(machine.value in ofAll) || !isNow) return undefined;
    const read = (): void => void readHealth().catch(() => null);
    read();
    const timer = setInterval(read, healthEveryMs);
    return () => clearInterval(timer);
  }, [machine.value, isNow]);
  return (
    <>
      <header class="view-head">
        <h1>Machines</h1>
        {isRecorded() ? <Title taskId={taskId} /> : <Picker taskId={taskId} />}
        <a href={taskAtPath(taskId, isLatest ? null : (moment?.seq ?? null))}>Task</a>
        <div class="segments" role="tablist" aria-label="Machine">
          {shownMachines.map((each) => (
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
          {ofAll[machine.value] !== undefined && (
            <p class="quiet small">
              {ofAll[machine.value]}
              {isNow
                ? '. It is lit as it is now.'
                : '; the journal of a task does not hold its states.'}
            </p>
          )}
          {machine.value === 'mergeQueue' && isNow && <InQueue />}
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
      {history.missing.value !== null && <p class="quiet small">{history.missing.value}</p>}
      <Scrubber shown={shown} />
    </>
  );
};

/** The statecharts, lit by one task. */
export const Machines = ({ taskId }: { taskId: string }) => {
  // The task that changed last when the view was opened stays: others change meanwhile.
  const latest = useRef<string | undefined>(undefined);
  const id = useComputed(() => {
    const isNone = tasks.value.size === 0;
    if (taskId === '' && !isNone) latest.current ??= choices()[0]?.task_id;
    const wanted = taskId === '' ? (latest.current ?? '') : taskId;
    return tasks.value.has(wanted) ? wanted : null;
  }).value;
  if (id === null)
    return (
      <Empty title={taskId === '' ? 'No tasks yet' : `No task ${taskId} in this project.`}>
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
