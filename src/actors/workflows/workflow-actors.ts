import { setTimeout as delay } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import { isServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import { openChoices, type WorkflowContext } from '../../machines/workflow-context.ts';
import { workflowMachine } from '../../machines/workflow-machine.ts';
import { type AwaitPorts, awaitTasks, DeletedTask } from './await-tasks.ts';
import { checkPhase } from './check-phase.ts';
import { makeTasks, runPlanned, tasksOfWorkflow, type WorkflowTasks } from './make-tasks.ts';
import { type PlannedTask, plannedQuestions, plannedTasks } from './planned-tasks.ts';
import { type AnsweredQuestion, readAnswers } from './read-answers.ts';
import { type EvidencePorts, evidenceOf } from './task-evidence.ts';

export interface WorkflowActorPorts extends AwaitPorts, EvidencePorts {
  readonly service: WorkflowTasks;
  /** Why a person closed or cancelled a task; empty without a reason. */
  readonly reasonOf: (taskId: TaskId) => Promise<string>;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

type StateWork<Output> = (context: WorkflowContext, signal: AbortSignal) => Promise<Output>;

const firstRetryPauseMs = 500;
const longestRetryPause = 30_000;
/** A task that was refused a run, for example as the queue was full, is started again. */
const startAgainMs = 15_000;

const isFinal = (error: unknown): boolean =>
  error instanceof DeletedTask ||
  (isServiceError(error) && ['invalid_params', 'task_not_found'].includes(error.code));

/** Tries again what an outage interrupts; what can never succeed ends the workflow. */
const persistently =
  <Output>({ log }: WorkflowActorPorts, work: StateWork<Output>) =>
  async ({
    input,
    signal,
  }: {
    readonly input: WorkflowContext;
    readonly signal: AbortSignal;
  }): Promise<Output> => {
    for (let pauseMs = firstRetryPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestRetryPause)) {
      try {
        return await work(input, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (isFinal(error)) throw error;
        log('a step of a workflow failed; the server tries again', {
          workflow: input.workflowId,
          error,
        });
        await delay(pauseMs, undefined, { signal });
      }
    }
  };

/** Starts tasks of roles that rest although they could run. */
const createStartAgain = (
  { service, now }: WorkflowActorPorts,
  context: WorkflowContext,
  planned: readonly PlannedTask[],
) => {
  let next = now() + startAgainMs;
  return async (waiting: readonly TrackedTask[], signal: AbortSignal): Promise<void> => {
    if (now() < next) return;
    next = now() + startAgainMs;
    for (const { id, labels, ready } of waiting) {
      const own = planned.find((each) => each.labels.every((label) => labels.includes(label)));
      if (!ready || own === undefined) continue;
      const { phase } = await service.status(id);
      signal.throwIfAborted();
      if (phase === 'waiting_for_run') await runPlanned(service, context, own, id);
    }
  };
};

const tasksOfRound = ({ tasks, phase, round }: WorkflowContext, isQuestion: boolean) =>
  tasks.filter(
    (task) =>
      task.phase === phase && task.round === round && task.step.startsWith('?') === isQuestion,
  );

const awaitAnswers =
  (ports: WorkflowActorPorts) => async (context: WorkflowContext, signal: AbortSignal) => {
    const asked = tasksOfRound(context, true);
    const open = openChoices(context).map(({ id }) => `?${id}`);
    const ofPerson = asked.filter(({ step }) => open.includes(step));
    const isForRole = ofPerson.length === 0;
    const questions = isForRole ? asked.filter(({ step }) => step === '?') : ofPerson;
    const planned = isForRole ? plannedQuestions({ ...context, tasks: [] }) : [];
    const isOver = (status: string): boolean =>
      status === 'complete' || (!isForRole && status === 'cancelled');
    const again = createStartAgain(ports, context, planned);
    const ids = questions.map(({ taskId }) => taskId);
    const found = await awaitTasks(ports, ids, isOver, signal, again);
    const answers: AnsweredQuestion[] = [];
    for (const { step, taskId } of questions) {
      const task = found.find(({ id }) => id === taskId);
      const { result } = await ports.service.status(taskId);
      answers.push({
        step,
        status: task === undefined ? '' : statusInTracker(task),
        reason: isForRole ? (result ?? '') : await ports.reasonOf(taskId),
      });
    }
    return readAnswers(context, answers);
  };

const awaitSteps =
  (ports: WorkflowActorPorts) => async (context: WorkflowContext, signal: AbortSignal) => {
    const ids = tasksOfRound(context, false).map(({ taskId }) => taskId);
    const again = createStartAgain(ports, context, plannedTasks(context));
    await awaitTasks(ports, ids, (status) => status === 'complete', signal, again);
  };

const overStatuses: ReadonlySet<string> = new Set(['complete', 'cancelled']);

/** Others ended or deleted the task meanwhile. */
const isOverMeanwhile = (error: unknown, status: string): boolean =>
  isServiceError(error) &&
  (error.code === 'task_not_found' || (error.code === 'event_not_allowed' && status !== 'started'));

export const cancelOpenTasks = async (
  { service }: Pick<WorkflowActorPorts, 'service'>,
  workflowId: string,
  reason: string,
): Promise<void> => {
  const tasks = await tasksOfWorkflow(service, workflowId);
  for (const { task_id, status } of tasks.filter((each) => !overStatuses.has(each.status)))
    await service.cancel(task_id, reason).catch((error: unknown) => {
      if (!isOverMeanwhile(error, status)) throw error;
    });
};

/** Remembers by workflow the work that changes tasks, since a cancel comes after it. */
const createUnfinishedWork = () => {
  const unfinished = new Map<string, Promise<unknown>>();
  return {
    remember:
      <Output>(work: StateWork<Output>): StateWork<Output> =>
      (context, signal) => {
        const { workflowId } = context;
        const promise = work(context, signal);
        const settled = promise
          .catch(() => {})
          .finally(() => {
            if (unfinished.get(workflowId) === settled) unfinished.delete(workflowId);
          });
        unfinished.set(workflowId, settled);
        return promise;
      },
    settled: async (workflowId: string): Promise<void> => {
      await unfinished.get(workflowId);
    },
  };
};

/** The actors of the workflow chart. Each can be repeated after a restart. */
export const provideWorkflowActors = (ports: WorkflowActorPorts): typeof workflowMachine => {
  const { remember, settled } = createUnfinishedWork();
  const actor = <Output>(work: StateWork<Output>) =>
    fromPromise<Output, WorkflowContext>(persistently(ports, work));
  const make = (planned: (context: WorkflowContext) => readonly PlannedTask[]) =>
    actor(
      remember((context, signal) => makeTasks(ports.service, context, planned(context), signal)),
    );
  return workflowMachine.provide({
    actors: {
      askQuestions: make(plannedQuestions),
      awaitAnswers: actor(remember(awaitAnswers(ports))),
      createTasks: make(plannedTasks),
      awaitTasks: actor(remember(awaitSteps(ports))),
      checkPhase: actor((context) => checkPhase(context, evidenceOf(ports, context))),
      cancelTasks: actor(async (context) => {
        const { workflowId, why } = context;
        await settled(workflowId);
        const reason = `its workflow ${workflowId} was cancelled${why === null ? '' : `: ${why}`}`;
        await cancelOpenTasks(ports, workflowId, reason);
      }),
    },
  });
};
