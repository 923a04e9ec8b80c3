import type { ComponentChildren } from 'preact';
import { workedMs } from '../../../src/http/worked-time.ts';
import { now } from '../../data/now.ts';
import { isRecorded } from '../../data/source.ts';
import {
  type Activity,
  activities,
  type PullRequest,
  type TaskView,
  tasks,
} from '../../data/tasks.ts';
import {
  age,
  cachedWords,
  clock,
  count,
  dateAndTime,
  duration,
  money,
} from '../../model/format.ts';
import { lookOf, whyOf } from '../../model/state.ts';
import { Icon } from '../../parts/icon.tsx';
import { PullRequestLink } from '../../parts/pull-request.tsx';
import { StatusPill } from '../../parts/status.tsx';
import { pathOf } from '../../shell/router.ts';
import { Actions } from './actions.tsx';

const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** A task that waits to run again has no time yet. */
const timeOf = (task: TaskView, at: number): string | null => {
  const isCounted = task.status === 'started' || task.completed_at !== undefined;
  const worked = isCounted ? workedMs(task, at) : null;
  return worked === null ? null : duration(worked);
};

const Ended = ({ at }: { at: number }) => (
  <Fact name="Ended">
    {isRecorded() ? (
      dateAndTime(at)
    ) : (
      <>
        {clock(at)} <span class="quiet">{age(now.value - at)} ago</span>
      </>
    )}
  </Fact>
);

const tones: Readonly<Record<string, string>> = {
  ...{ red: 'fail', conflicting: 'fail', changes: 'need', behind: 'need' },
  ...{ green: 'done', approved: 'done', yes: 'done' },
};

const waitsFor: Readonly<Record<string, string>> = {
  ...{ person: 'you', review: 'a review', forge: 'the forge', limit: 'the end of a limit' },
};

/** How its pull request stands; why is said below the title, where that is what it waits for. */
const AtForge = ({ pullRequest }: { pullRequest: PullRequest }) => {
  const { state, checks, review, mergeable, round, waits_for: waits } = pullRequest;
  const seen = Object.entries({ Checks: checks, Review: review, Mergeable: mergeable });
  return (
    <>
      <Fact name="Pull request">
        <PullRequestLink pullRequest={pullRequest} /> {state}
      </Fact>
      {seen.map(([name, value]) =>
        value === undefined ? null : (
          <Fact key={name} name={name}>
            <span class={`tone-${tones[value]}`}>{value}</span>
          </Fact>
        ),
      )}
      {round > 0 && <Fact name="Round">{round}</Fact>}
      {waits !== undefined && <Fact name="Waits for">{waitsFor[waits] ?? waits}</Fact>}
    </>
  );
};

const Facts = ({
  task,
  at,
  activity,
}: {
  task: TaskView;
  at: number;
  activity: Activity | undefined;
}) => {
  const { usage, attempt, role, priority, started_at: start, completed_at: end } = task;
  const time = timeOf(task, at);
  const isLive = task.status === 'started';
  return (
    <dl class="task-facts">
      {role !== undefined && <Fact name="Role">{role}</Fact>}
      <Fact name="Attempt">{attempt === 0 ? 'none yet' : attempt}</Fact>
      {attempt > 0 && (
        <>
          <Fact name={isLive ? 'Turn' : 'Turns'}>
            {usage.turns}
            {task.max_turns !== undefined && <span class="quiet"> of {task.max_turns}</span>}
          </Fact>
          <Fact name="Tokens">
            {count(usage.input_tokens)} in, {count(usage.output_tokens)} out{' '}
            <span class="quiet">{cachedWords(usage)}</span>
          </Fact>
          {usage.cost_usd !== undefined && <Fact name="Cost">{money(usage.cost_usd)}</Fact>}
        </>
      )}
      {time !== null && <Fact name="Time">{time}</Fact>}
      {isLive && activity !== undefined && (
        <Fact name="Last sign of life">
          <span class="tone-work">{age(now.value - activity.at)} ago</span>
        </Fact>
      )}
      {isRecorded() && start !== undefined && (
        <Fact name="Started">{dateAndTime(Date.parse(start))}</Fact>
      )}
      {end !== undefined && <Ended at={Date.parse(end)} />}
      <Fact name="Priority">{priority}</Fact>
      {task.pull_request !== undefined && <AtForge pullRequest={task.pull_request} />}
    </dl>
  );
};

const columnNames: Readonly<Record<string, string>> = {
  dependency: 'Waiting for dependency',
  slot: 'Queued',
  working: 'Working',
  needs: 'Needs you',
  review: 'To review',
  forge: 'In review',
  done: 'Done',
};

const Crumbs = ({ task }: { task: TaskView }) => (
  <p class="crumbs small">
    {!isRecorded() && (
      <>
        <a href={pathOf('board')}>Board</a>
        <Icon name="right" />
      </>
    )}
    <span>{columnNames[lookOf(task).column]}</span>
    <Icon name="right" />
    <span class="id">{task.task_id}</span>
  </p>
);

interface Given {
  readonly task: TaskView;
  readonly fail: (message: string) => void;
  /** The time that is shown (epoch ms). */
  readonly at: number;
  readonly mayAct: boolean;
}

export const TaskHead = ({ task, fail, at, mayAct }: Given) => {
  // Of now, so not of an earlier moment.
  const activity = mayAct ? activities.value.get(task.task_id) : undefined;
  return (
    <header class="task-head">
      <div class="task-name">
        <Crumbs task={task} />
        <div class="task-title">
          <h1>{task.title}</h1>
          <StatusPill task={task} />
        </div>
        <p class="task-why quiet">{whyOf(task, activity, tasks.value)}</p>
      </div>
      {mayAct && <Actions task={task} fail={fail} />}
      <Facts task={task} at={at} activity={activity} />
    </header>
  );
};
