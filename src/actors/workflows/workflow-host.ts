import { randomInt } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../../machines/errors.ts';
import {
  inputAfter,
  openChoices,
  phaseOf,
  stepsOf,
  type WorkflowContext,
  type WorkflowEvent,
  type WorkflowInput,
} from '../../machines/workflow/workflow-context.ts';
import {
  type WorkflowGuard,
  type WorkflowSnapshot,
  workflowGuards,
  workflowMachine,
} from '../../machines/workflow/workflow-machine.ts';
import { createHost, type Host, type HostPorts, readHosted } from '../engine/hosting/host.ts';
import { requireId } from '../engine/queries/task-id.ts';
import type { KeptReports } from '../engine/servers/kept-reports.ts';
import type { RoutePorts } from '../engine/service/routed-service.ts';
import { UnreadableStateError } from '../journal/chart-versions.ts';
import { workflowKey } from '../journal/replay/replay.ts';
import { readEach } from '../journal/snapshots.ts';
import type { ActorReads, EntryReads, SavedActor, Store } from '../store/port.ts';
import {
  badParam,
  inputFor,
  requireOwnFolders,
  type StartPorts,
  type StartWorkflow,
  workflowOfSaved,
} from './report-paths.ts';
import {
  cancelledReason,
  cancelOpenTasks,
  provideWorkflowActors,
  type WorkflowActorPorts,
} from './workflow-actors.ts';
import {
  lineIn,
  lostWorkflowView,
  type WorkflowLine,
  type WorkflowView,
  workflowLine,
  workflowView,
} from './workflow-view.ts';

interface WorkflowGuardValue {
  readonly guard: WorkflowGuard;
  readonly value: boolean;
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** As the explanation of a task, with the workflow. */
interface WorkflowExplanation {
  readonly task_id: string;
  readonly workflow: WorkflowLine & Pick<WorkflowView, 'continued_as'>;
  readonly state: unknown;
  readonly guards: readonly WorkflowGuardValue[];
  readonly allowed_events: readonly string[];
  /** One sentence: it waits for this, or ended because of this. */
  readonly reason: string | null;
  readonly deadline: null;
  readonly request_reason: null;
  readonly conflicts: readonly [];
}

/** The guards of the chart, evaluated now; `hasPassed` only where the phase was checked. */
const guardsOf = (context: WorkflowContext): readonly WorkflowGuardValue[] => {
  const phase = phaseOf(context);
  const open = openChoices(context).map(({ id }) => id);
  const steps = stepsOf(context, phase).map(({ id }) => id);
  const report = context.reports.find((each) => each.phase === context.phase)?.report;
  const failed = (report?.findings ?? [])
    .filter(({ passed }) => !passed)
    .map(({ gate, check, says }) => `${gate}, ${check}: ${says}`);
  const { round } = context;
  const { rounds } = phase;
  return [
    {
      guard: 'hasOpenChoices',
      value: workflowGuards.hasOpenChoices({ context }),
      inputs: { open },
    },
    { guard: 'hasNoSteps', value: workflowGuards.hasNoSteps({ context }), inputs: { steps } },
    ...(report === undefined
      ? []
      : [
          {
            guard: 'hasPassed' as const,
            value: workflowGuards.hasPassed({ context }, { report }),
            inputs: { failed },
          },
        ]),
    {
      guard: 'hasRoundsLeft',
      value: workflowGuards.hasRoundsLeft({ context }),
      inputs: { round, rounds },
    },
  ];
};

/** Why nothing goes on with a workflow, and what to do. */
const explainLost = (view: WorkflowView): WorkflowExplanation => ({
  task_id: view.workflow_id,
  workflow: lineIn(view),
  state: view.state,
  guards: [],
  allowed_events: view.status === 'started' ? ['cancel'] : [],
  reason: view.why ?? view.problem ?? null,
  deadline: null,
  request_reason: null,
  conflicts: [],
});

const explainWorkflow = (
  snapshot: WorkflowSnapshot,
  { waits_for, why, continued_as }: Pick<WorkflowView, 'waits_for' | 'why' | 'continued_as'>,
): WorkflowExplanation => {
  const waits = waits_for.length === 0 ? null : `it waits for ${waits_for.join('; ')}`;
  return {
    task_id: snapshot.context.workflowId,
    workflow: { ...workflowLine(snapshot), continued_as },
    state: snapshot.value,
    guards: guardsOf(snapshot.context),
    allowed_events: snapshot.can({ type: 'cancel', reason: null }) ? ['cancel'] : [],
    reason: waits ?? why ?? null,
    deadline: null,
    request_reason: null,
    conflicts: [],
  };
};

interface WorkflowPageRequest {
  /** Counts workflows that are over; the first page has all the others, too. */
  readonly limit?: number;
  /** Id of the last workflow of the page before. */
  readonly cursor?: string;
}

interface WorkflowLinePage {
  readonly workflows: readonly WorkflowLine[];
  readonly next_cursor?: string;
}

const endedAtOnce = 100;

/** @throws invalid_params when the cursor names none that is over */
const workflowAtCursor = async (
  store: Pick<ActorReads, 'actor'>,
  cursor: string,
): Promise<SavedActor> => {
  const saved = await store.actor(workflowKey(cursor));
  if (saved === null || saved.pending)
    throw badParam('cursor', 'names no workflow that is over; start again without it');
  return saved;
};

type LineReads = Pick<EntryReads, 'latest' | 'read'>;

/** @throws UnreadableStateError without an entry of it */
const readLost = async (
  store: LineReads,
  saved: SavedActor,
  error: UnreadableStateError,
): Promise<WorkflowView> => {
  const { taskId } = saved;
  const last = await store.latest(taskId, 'workflow');
  if (last === null) throw error;
  const [first = last] = await store.read({ taskId, after: 0, limit: 1 });
  return lostWorkflowView(first, last.data, error.message);
};

interface Line {
  readonly startedAt: number;
  readonly line: WorkflowLine;
}
const newestFirst = (one: Line, other: Line): number => other.startedAt - one.startedAt;

/** One whose state cannot be restored is as its last entry shows it. */
const linesOf = async (store: LineReads, rows: readonly SavedActor[]): Promise<readonly Line[]> => {
  const lines: Line[] = [];
  for (const saved of rows) {
    try {
      const state = readHosted({ machine: workflowMachine, shown: workflowLine }, saved);
      lines.push({ startedAt: state.context.startedAt, line: workflowLine(state) });
    } catch (error) {
      if (!(error instanceof UnreadableStateError)) throw error;
      const { started_at, ...view } = await readLost(store, saved, error);
      lines.push({ startedAt: Date.parse(started_at), line: lineIn(view) });
    }
  }
  return lines;
};

/** Those that are not over, the newest first, and a page of the others, the last to end first. */
const listWorkflows = async (
  store: Pick<ActorReads, 'actor' | 'openHosted' | 'endedWorkflows'> & LineReads,
  { limit = endedAtOnce, cursor }: WorkflowPageRequest,
): Promise<WorkflowLinePage> => {
  const place = cursor === undefined ? undefined : await workflowAtCursor(store, cursor);
  const open = place === undefined ? await store.openHosted('workflow') : [];
  const found = await store.endedWorkflows(limit + 1, place);
  const ended = found.slice(0, limit);
  const last = ended.at(-1);
  return {
    workflows: [
      ...(await linesOf(store, open)).toSorted(newestFirst),
      ...(await linesOf(store, ended)),
    ].map(({ line }) => line),
    ...(found.length > limit && last !== undefined ? { next_cursor: last.taskId } : {}),
  };
};

/** They reject with `ServiceError` only. */
export interface WorkflowService {
  /** Answers when the tasks of the first phase are made. @throws invalid_params */
  start(request: StartWorkflow): Promise<WorkflowLine>;
  /** Those that are not over, then the last to end first. @throws invalid_params */
  list(page?: WorkflowPageRequest): Promise<WorkflowLinePage>;
  /** @throws invalid_params for an unknown id */
  show(workflowId: string): Promise<WorkflowView>;
  /** The guards of its chart and what it waits for; null: no workflow has this id. */
  explain(id: string): Promise<WorkflowExplanation | null>;
  /**
   * Goes on with the phase in which a workflow failed or was cancelled, as a new workflow.
   * @throws invalid_params, event_not_allowed when it did neither
   */
  retry(workflowId: string, by?: string): Promise<WorkflowLine>;
  /** @throws invalid_params, event_not_allowed when it is over */
  cancel(workflowId: string, reason: string | null): Promise<WorkflowView>;
}

interface WorkflowHost
  extends Pick<
    Host<WorkflowSnapshot, WorkflowEvent, WorkflowInput>,
    'restore' | 'failing' | 'stop'
  > {
  readonly service: WorkflowService;
}

interface WorkflowHostPorts extends HostPorts, WorkflowActorPorts, StartPorts {
  readonly journal: HostPorts['journal'] & WorkflowActorPorts['journal'];
  readonly store: Pick<
    Store,
    'actor' | 'openHosted' | 'endedWorkflows' | 'request' | 'rememberAnswer' | 'latest' | 'read'
  >;
  readonly reports: Pick<KeptReports, 'read' | 'remove'>;
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
const newId = (): string =>
  `wf-${Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('')}`;

const isSettled = (snapshot: WorkflowSnapshot): boolean =>
  snapshot.hasTag('waits') || snapshot.status !== 'active';

const retryRequest = (workflowId: string): string => `workflow-retry/${workflowId}`;

type WorkflowStates = Host<WorkflowSnapshot, WorkflowEvent, WorkflowInput>;

const createStateReads = ({ store }: Pick<WorkflowHostPorts, 'store'>, host: WorkflowStates) => {
  const stateOf = async (workflowId: string): Promise<WorkflowSnapshot> => {
    const state = await host.stateOf(workflowId);
    if (state === null)
      throw badParam('workflow_id', 'names no workflow of this project; see: agent workflow list');
    return state;
  };
  /** Null for one that can be restored. @throws invalid_params */
  const lostView = async (workflowId: string): Promise<WorkflowView | null> => {
    try {
      await stateOf(workflowId);
      return null;
    } catch (error) {
      const saved = await store.actor(workflowKey(workflowId));
      if (!(error instanceof UnreadableStateError) || saved === null) throw error;
      return readLost(store, saved, error);
    }
  };
  return { stateOf, lostView };
};

/** Each returns false for one that is over. */
const createCancels = (
  ports: WorkflowHostPorts,
  host: WorkflowStates,
  stateOf: ReturnType<typeof createStateReads>['stateOf'],
) => {
  const cancelLive = async (workflowId: string, reason: string | null): Promise<boolean> => {
    const isOver = ({ status }: WorkflowSnapshot): boolean => status !== 'active';
    if (isOver(await stateOf(workflowId))) return false;
    return host.send(workflowId, { type: 'cancel', reason }, isOver);
  };
  const giveUp = async (lost: WorkflowView, reason: string | null): Promise<boolean> => {
    const { workflow_id: id, kind, name, phase, round } = lost;
    const status = 'cancelled' as const;
    const why = reason === null ? {} : { why: reason };
    const last = { workflow_id: id, kind, name, phase, status, value: status, round, ...why };
    if (!(await host.giveUp(id, last))) return false;
    await cancelOpenTasks(ports, id, cancelledReason(id, reason));
    return true;
  };
  return { cancelLive, giveUp };
};

const createWorkflowService = (ports: WorkflowHostPorts, host: WorkflowStates): WorkflowService => {
  const { store, tracker } = ports;
  const { stateOf, lostView } = createStateReads(ports, host);
  const { cancelLive, giveUp } = createCancels(ports, host, stateOf);
  const show = async (workflowId: string): Promise<WorkflowView> => {
    const lost = await lostView(workflowId);
    if (lost !== null) return lost;
    const snapshot = await stateOf(workflowId);
    const ids = snapshot.context.tasks.map(({ taskId }) => taskId);
    const next = (await store.request(retryRequest(workflowId)))?.answer ?? undefined;
    const hasBegun = next !== undefined && (await store.actor(workflowKey(next))) !== null;
    const tracked = ids.length === 0 ? [] : await tracker.findMany(ids);
    return workflowView(snapshot, tracked, hasBegun ? next : undefined);
  };
  const beginning = new Set<WorkflowInput>();
  /** @throws invalid_params when one that is not over writes to the same folders */
  const beginAlone = async (input: WorkflowInput) => {
    requireOwnFolders(input, [...beginning]);
    beginning.add(input);
    try {
      requireOwnFolders(input, readEach(await store.openHosted('workflow'), workflowOfSaved));
      return await host.begin(input, isSettled);
    } finally {
      beginning.delete(input);
    }
  };
  const startWith = async (input: WorkflowInput): Promise<WorkflowLine> => {
    await beginAlone(input);
    return workflowLine(await stateOf(input.workflowId));
  };
  return {
    start: async (request) => startWith(inputFor(ports, newId(), request)),
    retry: async (workflowId, by) => {
      const snapshot = await stateOf(workflowId);
      const task_id = requireId(workflowId);
      const refused = (state: string): ServiceError =>
        new ServiceError('event_not_allowed', { task_id, event: 'retry', state, allowed: [] });
      const { status } = workflowLine(snapshot);
      if (status !== 'failed' && status !== 'cancelled') throw refused(status);
      // A second retry would pay for the same work beside the first.
      const next = await store.rememberAnswer(retryRequest(workflowId), task_id, newId());
      if ((await store.actor(workflowKey(next))) !== null) throw refused(`continued as ${next}`);
      const input = inputAfter(snapshot.context, next, ports.now(), by);
      // Nobody does a step of the old one any more.
      await cancelOpenTasks(ports, workflowId, `its workflow goes on as ${input.workflowId}`);
      return startWith(input);
    },
    list: (page = {}) => listWorkflows(store, page),
    show,
    explain: async (id) => {
      if ((await store.actor(workflowKey(id))) === null) return null;
      const lost = await lostView(id);
      return lost === null ? explainWorkflow(await stateOf(id), await show(id)) : explainLost(lost);
    },
    cancel: async (workflowId, reason) => {
      const lost = await lostView(workflowId);
      const wasCancelled =
        lost === null ? await cancelLive(workflowId, reason) : await giveUp(lost, reason);
      if (wasCancelled) return show(workflowId);
      throw new ServiceError('event_not_allowed', {
        task_id: requireId(workflowId),
        event: 'cancel',
        allowed: [],
        state: (await show(workflowId)).status,
      });
    },
  };
};

export const createWorkflowHost = (ports: WorkflowHostPorts): WorkflowHost => {
  const { store, reports } = ports;
  const host = createHost(ports, {
    kind: 'workflow',
    machine: provideWorkflowActors(ports),
    idOf: ({ workflowId }) => workflowId,
    shown: (snapshot) => ({ ...workflowLine(snapshot), round: snapshot.context.round }),
    open: () => store.openHosted('workflow'),
    // Its gates have read them; what a crash leaves goes with the history of each task.
    ended: async ({ context }) => {
      for (const { taskId } of context.tasks) await reports.remove(taskId);
    },
  });
  return { ...host, service: createWorkflowService(ports, host) };
};

const cancelMethod = 'workflow.cancel';
const cancelSchema = z.tuple([z.string(), z.string().nullable()]);

/** A workflow is cancelled by the server that has its actor. All else is read from the rows. */
export const createRoutedWorkflows = (
  inner: WorkflowService,
  {
    node,
    ownerOf,
    ask,
  }: Pick<RoutePorts, 'node' | 'ask'> & {
    readonly ownerOf: (actorId: string) => Promise<string | null>;
  },
) => {
  const service: WorkflowService = {
    ...inner,
    cancel: async (workflowId, reason) => {
      const owner = await ownerOf(workflowKey(workflowId));
      return owner === null || owner === node
        ? inner.cancel(workflowId, reason)
        : ((await ask(owner, cancelMethod, [workflowId, reason], 45_000)) as WorkflowView);
    },
  };
  return {
    service,
    /** Undefined: another method. */
    answer: (method: string, params: unknown): Promise<unknown> | undefined =>
      method === cancelMethod ? inner.cancel(...cancelSchema.parse(params)) : undefined,
  };
};
