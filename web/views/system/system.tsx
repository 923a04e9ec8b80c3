import { useEffect } from 'preact/hooks';
import { workedMs } from '../../../src/http/worked-time.ts';
import { now } from '../../data/now.ts';
import { activities, type TaskView, tasks } from '../../data/tasks.ts';
import { health, readHealth, readUsage, slots, usage } from '../../data/totals.ts';
import { readWorkflows } from '../../data/workflows.ts';
import { age, duration, numbered } from '../../model/format.ts';
import { columnsOf } from '../../model/order.ts';
import { isMerging, lookOf, sinceOf, whyOf } from '../../model/state.ts';
import { Icon } from '../../parts/icon.tsx';
import { SignOut } from '../../parts/sign-out.tsx';
import { taskPath } from '../../shell/router.ts';
import { Spend } from './spend.tsx';
import { WorkflowTable } from './workflow-table.tsx';

const healthEveryMs = 10_000;
const rowsAtMost = 20;

const TaskRow = ({ task }: { task: TaskView }) => {
  const { icon, tone } = lookOf(task);
  const activity = activities.value.get(task.task_id);
  const isWaiting = task.awaiting !== undefined || task.status === 'queued';
  const waits = age(now.value - sinceOf(task));
  return (
    <tr>
      <td>
        <a href={taskPath(task.task_id)} title={task.title}>
          {task.title}
        </a>{' '}
        <span class="id">{task.task_id}</span>
      </td>
      <td class="role-cell">{task.role ?? ''}</td>
      <td class="why-cell">
        <Icon name={icon} tone={tone} /> {whyOf(task, activity, tasks.value)}
      </td>
      <td class="number">
        {isWaiting ? `waits ${waits}` : `works ${age(workedMs(task, now.value) ?? 0)}`}
      </td>
    </tr>
  );
};

const TaskTable = ({ all, none }: { all: readonly TaskView[]; none: string }) =>
  all.length === 0 ? (
    <p class="quiet">{none}</p>
  ) : (
    <table>
      <thead>
        <tr>
          <th>Task</th>
          <th class="role-cell">Role</th>
          <th>Why</th>
          <th class="number">For how long</th>
        </tr>
      </thead>
      <tbody>
        {all.slice(0, rowsAtMost).map((task) => (
          <TaskRow key={task.task_id} task={task} />
        ))}
        {all.length > rowsAtMost && (
          <tr>
            <td colSpan={4} class="quiet">
              {all.length - rowsAtMost} more
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );

const Health = () => {
  const found = health.value;
  if (found === null) return <p class="quiet">Asking the server…</p>;
  return (
    <table>
      <tbody>
        {Object.entries(found.checks).map(([name, { status, detail }]) => (
          <tr key={name}>
            <td class="check-name">
              <Icon
                name={status === 'ok' ? 'check' : 'cross'}
                tone={status === 'ok' ? 'done' : 'fail'}
              />{' '}
              {name}
            </td>
            <td class={status === 'ok' ? 'quiet' : 'tone-fail'}>{detail}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
};

export const System = () => {
  useEffect(() => {
    const read = (): void => {
      void readHealth().catch(() => null);
      void readUsage().catch(() => null);
      void readWorkflows().catch(() => null);
    };
    read();
    const timer = setInterval(read, healthEveryMs);
    return () => clearInterval(timer);
  }, []);
  const columns = columnsOf(tasks.value);
  const asking = columns.needs.filter(({ awaiting }) => awaiting !== undefined);
  const working = columns.working.filter((task) => !isMerging(task));
  const queue = columns.slot.filter(({ phase }) => phase !== 'waiting_for_run');
  const found = health.value;
  return (
    <section class="page">
      <header class="view-head">
        <h1>System</h1>
        <span class="quiet">
          {found === null
            ? ''
            : `version ${found.version}, ${found.status}, up ${duration(found.uptime_seconds * 1_000)}`}
        </span>
        <SignOut />
      </header>
      <div class="system">
        <div>
          <h2>
            Slots{' '}
            <span class="quiet">
              {slots.value === null ? '' : `${working.length} of ${slots.value} in use`}
              {asking.length > 0 ? `, ${asking.length} lent while a person is asked` : ''}
            </span>
          </h2>
          <TaskTable
            all={[...columns.working, ...asking]}
            none="No agent works. Run a task from the board."
          />
          <h2>
            Queue <span class="quiet">{numbered(queue.length, 'task waits', 'tasks wait')}</span>
          </h2>
          <TaskTable all={queue} none="No task waits for a slot." />
          <WorkflowTable />
        </div>
        <div>
          <h2>
            Spend <span class="quiet">by role, the last 7 days (UTC)</span>
          </h2>
          {usage.value === null ? (
            <p class="quiet">Asking the server…</p>
          ) : (
            <Spend usage={usage.value} />
          )}
          <h2>Health</h2>
          <Health />
        </div>
      </div>
    </section>
  );
};
