import { setTimeout as delay } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import { isServiceError } from '../../machines/errors.ts';
import { parseTaskId, type TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import {
  openChoices,
  type StepChoice,
  type WorkflowContext,
  type WorkflowTask,
} from '../../machines/workflow/workflow-context.ts';
import { workflowMachine } from '../../machines/workflow/workflow-machine.ts';
import type { KeptReports } from '../engine/servers/kept-reports.ts';
import type { TaskService } from '../engine/service/task-service.ts';
import type { StepEvidence } from '../gates/evidence.ts';
import type { Journal } from '../journal/journal.ts';
import type { TaskReads } from '../tracker/port.ts';
import type { WorkFiles, Workspace } from '../workspace/port.ts';
import { checkPhase } from './check-phase.ts';
import { makeTasks, runPlanned, tasksOfWorkflow, type WorkflowTasks } from './make-tasks.ts';
import {
  fillIn,
  latestTasks,
  type PlannedTask,
  plannedQuestions,
  plannedTasks,
} from './planned-tasks.ts';

interface EvidencePorts {
  readonly service: Pick<TaskService, 'status'>;
  readonly workspace: Pick<Workspace, 'inspect'>;
  readonly reports: Pick<KeptReports, 'read'>;
}

/** An attempt without a commit of its own has no files that can be looked at. */
const noFiles: WorkFiles = { changed: null, list: async () => [], read: async () => null };

type Earlier = readonly { readonly taskId: TaskId; readonly attempt: number }[];

/** The attempts at the same work in the rounds before, from which this round goes on. */
const earlierRounds = async (
  { service }: EvidencePorts,
  { tasks }: WorkflowContext,
  { step, copy, round }: WorkflowTask,
): Promise<Earlier> => {
  const before = tasks.filter(
    (each) => each.step === step && each.copy === copy && each.round < round,
  );
  return Promise.all(
    before.map(async ({ taskId }) => ({
      taskId,
      attempt: (await service.status(taskId)).attempt,
    })),
  );
};

/** Files that are read anew for each question, so no repository stays open. */
const filesOfAttempt = async (
  { workspace }: EvidencePorts,
  taskId: string,
  attempt: number,
  earlier: Earlier,
): Promise<WorkFiles> => {
  const id = parseTaskId(taskId);
  const inspect = async <Result>(read: (files: WorkFiles) => Promise<Result>) =>
    id === null ? null : workspace.inspect(id, attempt, read, earlier);
  const changed = await inspect(async (files) => files.changed);
  if (changed === null) return noFiles;
  return {
    changed,
    list: async (path) => (await inspect((files) => files.list(path))) ?? [],
    read: async (path, bytes) => inspect((files) => files.read(path, bytes)),
  };
};

/** Reads the evidence that the latest tasks of a step left; empty when the step was not done. */
const evidenceOf =
  (ports: EvidencePorts, context: WorkflowContext) =>
  async (step: string): Promise<readonly StepEvidence[]> => {
    const { leaves = [], verify: isVerified = false } =
      context.definition.phases.flatMap(({ steps }) => steps).find(({ id }) => id === step) ?? {};
    const found: StepEvidence[] = [];
    for (const task of latestTasks(context, step)) {
      const { taskId, copy } = task;
      const { status, attempt, result } = await ports.service.status(taskId);
      if (status !== 'complete') continue;
      found.push({
        step,
        taskId,
        results: result ?? '',
        isVerified: isVerified && context.verify.length > 0,
        leaves: leaves.map((path) => fillIn(context, path, copy)),
        files: await filesOfAttempt(
          ports,
          taskId,
          attempt,
          await earlierRounds(ports, context, task),
        ),
        report: (path) => ports.reports.read(taskId, attempt, path),
      });
    }
    return found;
  };

interface AwaitPorts {
  readonly tracker: Pick<TaskReads, 'findMany'>;
  readonly journal: Pick<Journal, 'onCommit'>;
}

/** Others change tasks without an entry of ours: they are looked at again after this time. */
const readAgainMs = 2_000;
const endTypes: ReadonlySet<string> = new Set([
  'completed',
  'failed',
  'cancelled',
  'tracker_imported',
]);

class DeletedTask extends Error {
  override readonly name = 'DeletedTask';
}

/** Resolves at the next end of one of the tasks, or after a while. */
const nextChange = (
  { journal }: AwaitPorts,
  ids: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const over = (): void => {
      clearTimeout(timer);
      forget();
      signal.removeEventListener('abort', aborted);
    };
    const goOn = (): void => {
      over();
      resolve();
    };
    const aborted = (): void => {
      over();
      reject(signal.reason);
    };
    const timer = setTimeout(goOn, readAgainMs);
    const forget = journal.onCommit((entries) => {
      if (entries.some(({ taskId, type }) => ids.has(taskId) && endTypes.has(type)))
        setImmediate(goOn);
    });
    signal.addEventListener('abort', aborted, { once: true });
  });

/**
 * Waits until `isOver` holds for every task. `each` is called with those that it does not hold for,
 * at each look. @throws DeletedTask when one is gone
 */
const awaitTasks = async (
  ports: AwaitPorts,
  taskIds: readonly TaskId[],
  isOver: (status: string) => boolean,
  signal: AbortSignal,
  each: (waiting: readonly TrackedTask[], signal: AbortSignal) => Promise<void> = async () => {},
): Promise<readonly TrackedTask[]> => {
  const ids = new Set<string>(taskIds);
  for (;;) {
    signal.throwIfAborted();
    const found = await ports.tracker.findMany(taskIds);
    const gone = taskIds.find((id) => !found.some((task) => task.id === id));
    if (gone !== undefined) throw new DeletedTask(`its task ${gone} was deleted`);
    const waiting = found.filter((task) => !isOver(statusInTracker(task)));
    if (waiting.length === 0) return found;
    const changed = nextChange(ports, ids, signal);
    changed.catch(() => {});
    await each(waiting, signal);
    await changed;
  }
};

interface AnsweredQuestion {
  /** The id of the question: `?strategist`, or `?` for all. */
  readonly step: string;
  /** `complete` or `cancelled`. */
  readonly status: string;
  /** Why it was closed or cancelled; of a role, its summary. */
  readonly reason: string;
}

const saysNo = /^\s*(?:no|n)\b/i;

const fromPerson = ({ step, status, reason }: AnsweredQuestion): StepChoice => ({
  step: step.slice(1),
  selected: status === 'complete' && !saysNo.test(reason),
  by: 'person',
  reason,
});

/** Null when the role said nothing about the step. */
const fromRole = (step: string, { reason }: AnsweredQuestion): StepChoice | null => {
  const line = reason
    .split(/\r?\n/)
    .map((text) => text.replace(/[*_`]/g, '').replace(/^\s*[-+]\s*/, ''))
    .find((text) => text.toLowerCase().startsWith(`${step}:`));
  const [, word, why = ''] = /^[^:]*:\s*(yes|no)\b[\s,;:.-]*(.*)/i.exec(line ?? '') ?? [];
  if (word === undefined) return null;
  return {
    step,
    selected: word.toLowerCase() === 'yes',
    by: 'product-manager',
    reason: why.trim(),
  };
};

/** What was decided about each open step; a step that a role does not mention stays open. */
const readAnswers = (
  context: WorkflowContext,
  answers: readonly AnsweredQuestion[],
): readonly StepChoice[] => {
  const ofRole = answers.find(({ step }) => step === '?');
  if (ofRole === undefined) return answers.map(fromPerson);
  return openChoices(context).flatMap(({ id }) => fromRole(id, ofRole) ?? []);
};

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

export const cancelledReason = (workflowId: string, why: string | null): string =>
  `its workflow ${workflowId} was cancelled${why === null ? '' : `: ${why}`}`;

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
        await cancelOpenTasks(ports, workflowId, cancelledReason(workflowId, why));
      }),
    },
  });
};
