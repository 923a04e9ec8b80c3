import { now } from '../../data/now.ts';
import { link } from '../../data/stream.ts';
import { activities, type TaskView, tasks } from '../../data/tasks.ts';
import { clock, money } from '../../model/format.ts';
import { ageOf, lookOf, turnsOf, whyOf } from '../../model/state.ts';
import { Icon } from '../../parts/icon.tsx';
import { taskPath } from '../../shell/router.ts';

/** A live attempt that is silent for longer is shown in amber. */
const silentMs = 60_000;

export const Card = ({ task }: { task: TaskView }) => {
  const activity = activities.value.get(task.task_id);
  const { icon, tone, column } = lookOf(task);
  const isLive = column === 'working';
  const isCut = link.value.state === 'lost';
  const last = Math.max(activity?.at ?? 0, Date.parse(task.updated_at));
  const isSilent = isLive && !isCut && now.value - last > silentMs;
  return (
    <a
      class={`card ${isCut ? 'stale' : ''}`}
      href={taskPath(task.task_id)}
      data-stop={task.task_id}
    >
      <span class="card-top">
        <span class="id">{task.task_id}</span>
        <span class="role">{task.role ?? ''}</span>
        <span class={`card-age ${isSilent ? 'tone-need' : isLive ? 'tone-work' : ''}`}>
          {isLive && !isCut && <span class="dot" />}
          {isCut ? `at ${clock(last)}` : ageOf(task, activity, now.value)}
        </span>
      </span>
      <strong class="card-title" title={task.title}>
        {task.title}
      </strong>
      <span class="why">
        <Icon name={icon} tone={tone} />
        <span>{whyOf(task, activity, tasks.value)}</span>
      </span>
      <span class="card-foot">
        {task.attempt === 0 ? (
          <span>no attempt yet</span>
        ) : (
          <>
            <span>attempt {task.attempt}</span>
            <span>{turnsOf(task)}</span>
            {task.usage.cost_usd !== undefined && (
              <span class="card-cost">{money(task.usage.cost_usd)}</span>
            )}
          </>
        )}
      </span>
    </a>
  );
};
