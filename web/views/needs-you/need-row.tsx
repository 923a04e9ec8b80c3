import { useSignal } from '@preact/signals';
import { now } from '../../data/now.ts';
import { type TaskView, tasks } from '../../data/tasks.ts';
import { age, clock, money, numbered } from '../../model/format.ts';
import { lookOf, pullRequestOf, sinceOf, turnsOf, whyOf } from '../../model/state.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/notice.tsx';
import { taskPath } from '../../shell/router.ts';
import { Approval, Question } from './asked.tsx';
import { AtForge, Failed, ReadyToMerge } from './ended.tsx';
import { PersonsStep } from './persons-step.tsx';

/** Role, attempt, turn, cost, and what waits behind it. */
const Facts = ({ task, holds }: { task: TaskView; holds: number }) => {
  const { role, attempt, usage, work } = task;
  const facts = [
    role,
    ...(attempt === 0 ? [] : [`attempt ${attempt}`, turnsOf(task)]),
    usage.cost_usd === undefined ? null : money(usage.cost_usd),
    work === undefined ? null : numbered(work.files, 'file'),
  ];
  return (
    <p class="facts small">
      {facts.filter(Boolean).map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {work !== undefined && (
        <span>
          <span class="tone-done">+{work.insertions}</span>{' '}
          <span class="tone-fail">−{work.deletions}</span>
        </span>
      )}
      {holds > 0 && <strong class="tone-need">holds up {numbered(holds, 'task')}</strong>}
    </p>
  );
};

const waitOf = (task: TaskView, at: number): string => {
  const since = age(at - sinceOf(task));
  const { awaiting } = task;
  if (awaiting === undefined) return `${since} ago`;
  if (awaiting.deadline === undefined) return `waits ${since}`;
  const end = clock(Date.parse(awaiting.deadline));
  return `waits ${since} · ${awaiting.default_answer === undefined ? 'fails' : 'the default counts'} at ${end}`;
};

export const Asked = ({ task, fail }: { task: TaskView; fail: (message: string) => void }) => {
  if (task.awaiting?.kind === 'input') return <Question task={task} fail={fail} />;
  if (task.awaiting !== undefined) return <Approval task={task} fail={fail} />;
  if (task.phase === 'waiting_for_person') return <PersonsStep task={task} fail={fail} />;
  if (task.parked_until !== undefined)
    return <p class="asked">{whyOf(task, undefined, tasks.value)}</p>;
  if (pullRequestOf(task) !== null) return <AtForge task={task} fail={fail} />;
  return task.status === 'failed' ? (
    <Failed task={task} fail={fail} />
  ) : (
    <ReadyToMerge task={task} fail={fail} />
  );
};

export const NeedRow = ({ task, holds }: { task: TaskView; holds: number }) => {
  const problem = useSignal<string | null>(null);
  const { icon, tone, word } = lookOf(task);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: j and k move the focus from row to row
    <li class="need" tabIndex={0} data-stop={task.task_id}>
      <Icon name={icon} tone={tone} />
      <div>
        <p class="need-head">
          <span class={`kind tone-${tone}`}>{word}</span>
          <a class="title" href={taskPath(task.task_id)}>
            {task.title}
          </a>
          <span class="id">{task.task_id}</span>
          <span class="need-wait">{waitOf(task, now.value)}</span>
        </p>
        <Facts task={task} holds={holds} />
        <Asked
          task={task}
          fail={(message) => {
            problem.value = message;
          }}
        />
        <Problem message={problem} />
      </div>
    </li>
  );
};
