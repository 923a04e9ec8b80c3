import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../../../src/machines/message-of.ts';
import { followFrames } from '../../data/live.ts';
import { readWorkflow, type WorkflowView } from '../../data/workflows.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { TaskLine } from '../../parts/task-link.tsx';
import { taskPath } from '../../shell/router.ts';

type Phase = WorkflowView['phases'][number];

const looks: Readonly<Record<Phase['state'], readonly [IconName, string, string]>> = {
  to_come: ['circle', 'wait', 'to come'],
  active: ['circle', 'need', 'at work'],
  passed: ['check', 'done', 'passed'],
  not_passed: ['cross', 'fail', 'not passed'],
  passed_over: ['struck', 'wait', 'passed over'],
};

const PhaseSection = ({ phase }: { phase: Phase }) => {
  const [icon, tone, word] = looks[phase.state];
  return (
    <section>
      <h2>
        <Icon name={icon} tone={tone} /> {phase.number} {phase.name}{' '}
        <span class="quiet">{word}</span>
      </h2>
      {phase.steps.map(({ id, selected, decided_by, reason }) =>
        selected === undefined ? null : (
          <p key={id} class="quiet">
            {id}: {selected ? 'yes' : 'no'} ({decided_by}
            {reason === undefined || reason === '' ? '' : `: ${reason}`})
          </p>
        ),
      )}
      {phase.tasks.map(({ task_id }) => (
        <TaskLine key={task_id} id={task_id} />
      ))}
      {phase.findings.map(({ gate, check, passed, says }) => (
        <p key={`${gate} ${check} ${says}`}>
          <Icon name={passed ? 'check' : 'cross'} tone={passed ? 'done' : 'fail'} /> {gate}, {check}
          : <span class="quiet">{says}</span>
        </p>
      ))}
    </section>
  );
};

const idsOf = ({ tasks }: Phase): readonly string[] => tasks.map(({ task_id }) => task_id);

/** The first of the tasks that a text names is a link. */
const WithLink = ({ text, ids }: { text: string; ids: readonly string[] }) => {
  const id = ids.find((each) => text.includes(`${each} (`));
  if (id === undefined) return <>{text}</>;
  const at = text.indexOf(id);
  return (
    <>
      {text.slice(0, at)}
      <a href={taskPath(id)}>{id}</a>
      {text.slice(at + id.length)}
    </>
  );
};

const Phases = ({ view }: { view: WorkflowView }) => (
  <>
    <header class="view-head">
      <h1>{view.name}</h1>
      <span class="quiet">
        {view.kind} {view.version}, {view.workflow_id}, {view.status}
      </span>
    </header>
    {view.problem !== undefined && <p class="tone-fail">{view.problem}</p>}
    {view.why !== undefined && (
      <section>
        <h2>Why it is {view.status}</h2>
        <p class="why">{view.why}</p>
      </section>
    )}
    {view.narrowed_by !== undefined && (
      <p class="quiet">
        narrowed by {view.narrowed_by.file}: {view.narrowed_by.changes.join('; ')}
      </p>
    )}
    {view.waits_for.length > 0 && (
      <section>
        <h2>Waits for</h2>
        <ul>
          {view.waits_for.map((each) => (
            <li key={each}>
              <WithLink text={each} ids={view.phases.flatMap(idsOf)} />
            </li>
          ))}
        </ul>
      </section>
    )}
    {view.phases.map((phase, at) => (
      <PhaseSection key={`${at}`} phase={phase} />
    ))}
  </>
);

/** A workflow as its phases, with what each waits for; read again when it or one of its tasks changes. */
export const WorkflowPage = ({ taskId: workflowId }: { taskId: string }) => {
  const [view, setView] = useState<WorkflowView | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let tasks: ReadonlySet<string> = new Set();
    const read = (): void => {
      readWorkflow(workflowId).then(
        (found) => {
          tasks = new Set(found.phases.flatMap(idsOf));
          setView(found);
          setProblem(null);
        },
        (error: unknown) => setProblem(messageOf(error)),
      );
    };
    read();
    return followFrames({
      onFresh: read,
      onFrames: (frames) => {
        const isNews = frames.some(
          ({ type, task_id }) =>
            (type === 'workflow' && task_id === workflowId) ||
            (type === 'status_update' && tasks.has(task_id)),
        );
        if (isNews) read();
      },
    });
  }, [workflowId]);
  return (
    <section class="page workflow">
      {problem !== null && <p class="tone-fail">{problem}</p>}
      {view === null ? null : <Phases view={view} />}
    </section>
  );
};
