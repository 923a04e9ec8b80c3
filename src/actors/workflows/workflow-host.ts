import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type ActorRefFrom, createActor, waitFor } from 'xstate';
import { ServiceError } from '../../machines/errors.ts';
import type { Thoroughness } from '../../machines/thoroughness.ts';
import type { StepChoice, WorkflowInput } from '../../machines/workflow-context.ts';
import type { WorkflowDefinition } from '../../machines/workflow-definition.ts';
import { type WorkflowSnapshot, workflowMachine } from '../../machines/workflow-machine.ts';
import type { ActorRoot } from '../engine/actor-system.ts';
import { requireId } from '../engine/task-id.ts';
import { transitionDeadline } from '../journal/commit-answer.ts';
import { durable } from '../journal/durable-actor.ts';
import { entry } from '../journal/event-types.ts';
import type { Journal } from '../journal/journal.ts';
import { type WorkflowStart, workflowKey } from '../journal/replay-workflow.ts';
import { machineVersion, persistedSnapshot } from '../journal/snapshots.ts';
import type { Change, SavedActor, Store } from '../store/port.ts';
import { explainWorkflow, type WorkflowExplanation } from './explain-workflow.ts';
import { fillIn } from './planned-tasks.ts';
import { provideWorkflowActors, type WorkflowActorPorts } from './workflow-actors.ts';
import {
  type WorkflowLine,
  type WorkflowView,
  workflowLine,
  workflowView,
} from './workflow-view.ts';

export interface StartWorkflow {
  /** The name of a definition. */
  readonly kind: string;
  /** The feature, or the question. */
  readonly name: string;
  readonly product?: string;
  readonly thoroughness?: Thoroughness;
  /** The optional steps that are done; the others are not. Absent: they are asked for. */
  readonly steps?: readonly string[];
  readonly decides?: 'person' | 'role';
  readonly verify?: readonly string[];
  readonly model?: string;
}

/** They reject with `ServiceError` only. */
export interface WorkflowService {
  /** Answers when the tasks of the first phase are made. @throws invalid_params */
  start(request: StartWorkflow): Promise<WorkflowLine>;
  list(): Promise<{ readonly workflows: readonly WorkflowLine[] }>;
  /** @throws invalid_params for an unknown id */
  show(workflowId: string): Promise<WorkflowView>;
  /** The guards of its chart and what it waits for; null: no workflow has this id. */
  explain(id: string): Promise<WorkflowExplanation | null>;
  /** @throws invalid_params, event_not_allowed when it is over */
  cancel(workflowId: string, reason: string | null): Promise<WorkflowView>;
}

export interface WorkflowHost {
  readonly service: WorkflowService;
  /** Takes up the workflows of an earlier server. */
  restore(): Promise<void>;
  stop(): void;
  /** Where reports of a task of a workflow may be. */
  reportPathsOf(labels: readonly string[]): readonly string[];
}

export interface WorkflowHostPorts extends WorkflowActorPorts {
  readonly root: ActorRoot;
  readonly journal: Journal;
  readonly store: Pick<Store, 'actor' | 'workflows'>;
  /** The definition of a name, or why there is none. */
  readonly definition: (kind: string) => WorkflowDefinition | string;
  /** The name of the project, for folders. */
  readonly project: string;
}

type WorkflowActor = ActorRefFrom<typeof workflowMachine>;

interface Loaded {
  readonly actor: WorkflowActor;
  revision: number;
}

const firstTasksMs = 30_000;
const takeUpAgainMs = 1_000;

const badParam = (path: string, problem: string): ServiceError =>
  new ServiceError('invalid_params', { fields: [{ path, problem }] });

/** Lower case, with dashes: for names of folders. */
export const slugOf = (text: string): string =>
  text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/[^a-z0-9-]/g, '')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60)
    .replace(/-+$/, '');

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
const newId = (): string =>
  `wf-${Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('')}`;

const choicesFrom = (
  definition: WorkflowDefinition,
  steps: readonly string[] | undefined,
): readonly StepChoice[] => {
  if (steps === undefined) return [];
  const optional = definition.phases.flatMap((phase) =>
    phase.steps.filter(({ when }) => when !== undefined).map(({ id }) => id),
  );
  const unknown = steps.find((step) => !optional.includes(step));
  if (unknown !== undefined)
    throw badParam(
      'steps',
      `has ${JSON.stringify(unknown)}; the optional steps of ${definition.name} are ${optional.join(', ') || 'none'}`,
    );
  return optional.map((step) => ({
    ...{ step, selected: steps.includes(step), by: 'flag' },
    reason: steps.includes(step) ? 'named at the start' : 'not named at the start',
  }));
};

const inputFor = (
  { definition: definitionOf, project, now }: WorkflowHostPorts,
  workflowId: string,
  request: StartWorkflow,
): WorkflowInput => {
  const definition = definitionOf(request.kind);
  if (typeof definition === 'string') throw badParam('kind', definition);
  const name = request.name.replace(/\s+/g, ' ').trim();
  if (name === '') throw badParam('name', 'is empty');
  return {
    ...{ workflowId, definition },
    subject: {
      name,
      slug: slugOf(name) || workflowId,
      product: slugOf(request.product ?? project) || 'product',
      thoroughness: request.thoroughness ?? 'medium',
    },
    verify: request.verify ?? [],
    model: request.model ?? null,
    decides: request.decides ?? 'person',
    choices: choicesFrom(definition, request.steps),
    startedAt: now(),
  };
};

const changeOf = (
  snapshot: WorkflowSnapshot,
  persisted: unknown,
  {
    revision,
    cause,
    at,
  }: { readonly revision: number; readonly cause: unknown; readonly at: number },
): Change => {
  const { workflowId, round } = snapshot.context;
  const id = workflowKey(workflowId);
  const { value } = snapshot;
  const data = { ...workflowLine(snapshot), machine: 'workflow', value, round };
  return {
    actor: {
      ...{ id, taskId: workflowId, version: machineVersion },
      pending: snapshot.status === 'active',
      changedAt: at,
      snapshot: JSON.stringify(persisted),
    },
    unchanged: { id, revision },
    entries: [entry(workflowId, 0, 'workflow', at, data, cause)],
  };
};

/** The state of a workflow without its actor. */
const savedState = (saved: SavedActor): WorkflowSnapshot => {
  const { value, context }: Pick<WorkflowSnapshot, 'value' | 'context'> = persistedSnapshot(saved);
  return workflowMachine.resolveState({ value, context });
};

/** The actors of workflows: one for each that is not over. */
const createActors = (ports: WorkflowHostPorts) => {
  const { root, store, journal, now, log } = ports;
  const loaded = new Map<string, Loaded>();
  const provided = provideWorkflowActors(ports);
  let stopped = false;
  const logic = durable(provided, {
    now,
    commit: async ({ next, cause }) => {
      const own = loaded.get(next.context.workflowId);
      const answer = await journal.commit(
        changeOf(next, provided.getPersistedSnapshot(next), {
          revision: own?.revision ?? 0,
          cause,
          at: now(),
        }),
      );
      if (answer === 'ok' && own !== undefined) own.revision += 1;
      return answer;
    },
    ...transitionDeadline,
  });

  const forget = (workflowId: string, own: Loaded): void => {
    if (loaded.get(workflowId) === own) loaded.delete(workflowId);
    root.stop(own.actor);
  };
  const load = (saved: SavedActor): Loaded => {
    const workflowId = saved.taskId;
    const actor = createActor(logic, {
      id: saved.id,
      parent: root.parent,
      snapshot: persistedSnapshot(saved),
      input: undefined,
    });
    const own: Loaded = { actor, revision: saved.revision };
    loaded.set(workflowId, own);
    actor.subscribe({
      next: ({ status }) => {
        if (status === 'done') setImmediate(() => forget(workflowId, own));
      },
      error: (error) => {
        forget(workflowId, own);
        if (stopped) return;
        log('the actor of a workflow failed; it is restored from its committed state', {
          ...{ workflow: workflowId, error },
        });
        void delay(takeUpAgainMs, undefined, { ref: false }).then(() => takeUp(workflowId));
      },
    });
    actor.start();
    return own;
  };
  const takeUp = async (workflowId: string): Promise<void> => {
    try {
      const saved = await store.actor(workflowKey(workflowId));
      if (!stopped && saved?.pending === true && !loaded.has(workflowId)) load(saved);
    } catch (error) {
      log('a workflow could not be restored; the server tries again', {
        ...{ workflow: workflowId, error },
      });
      if (!stopped)
        void delay(takeUpAgainMs, undefined, { ref: false }).then(() => takeUp(workflowId));
    }
  };
  /** Commits the first state before its actor exists. */
  const begin = async (input: WorkflowInput): Promise<WorkflowActor> => {
    const first = createActor(provided, { input }).getSnapshot();
    const cause: WorkflowStart = { type: 'xstate.init', input };
    const change = changeOf(first, provided.getPersistedSnapshot(first), {
      ...{ revision: 0, cause, at: now() },
    });
    if ((await journal.commit(change)) !== 'ok')
      throw new ServiceError('internal', { detail: 'the workflow could not be saved; ask again' });
    const saved = await store.actor(workflowKey(input.workflowId));
    if (saved === null)
      throw new ServiceError('internal', { detail: 'the workflow was not saved' });
    return load(saved).actor;
  };
  return {
    loaded,
    begin,
    takeUp,
    stop: () => {
      stopped = true;
      for (const [workflowId, own] of [...loaded]) forget(workflowId, own);
    },
  };
};

const isSettled = (snapshot: WorkflowSnapshot): boolean =>
  snapshot.hasTag('waits') || snapshot.status !== 'active';

const createService = (
  ports: WorkflowHostPorts,
  { loaded, begin }: ReturnType<typeof createActors>,
): WorkflowService => {
  const { store, tracker } = ports;
  const stateOf = async (workflowId: string): Promise<WorkflowSnapshot> => {
    const live = loaded.get(workflowId)?.actor.getSnapshot();
    if (live !== undefined && live.status !== 'error') return live;
    const saved = await store.actor(workflowKey(workflowId));
    if (saved === null)
      throw badParam('workflow_id', 'names no workflow of this project; see: agent workflow list');
    return savedState(saved);
  };
  const show = async (workflowId: string): Promise<WorkflowView> => {
    const snapshot = await stateOf(workflowId);
    const ids = snapshot.context.tasks.map(({ taskId }) => taskId);
    return workflowView(snapshot, ids.length === 0 ? [] : await tracker.findMany(ids));
  };
  return {
    start: async (request) => {
      const input = inputFor(ports, newId(), request);
      const actor = await begin(input);
      await waitFor(actor, isSettled, { timeout: firstTasksMs }).catch(() => {});
      return workflowLine(await stateOf(input.workflowId));
    },
    list: async () => {
      const saved = await store.workflows();
      const states = saved.map((each) => savedState(each));
      return {
        workflows: states
          .sort((one, other) => one.context.startedAt - other.context.startedAt)
          .map(workflowLine),
      };
    },
    show,
    explain: async (id) =>
      (await store.actor(workflowKey(id))) === null
        ? null
        : explainWorkflow(await stateOf(id), await show(id)),
    cancel: async (workflowId, reason) => {
      const snapshot = await stateOf(workflowId);
      const actor = loaded.get(workflowId)?.actor;
      const event = { type: 'cancel', reason } as const;
      if (actor === undefined || snapshot.status !== 'active')
        throw new ServiceError('event_not_allowed', {
          ...{ task_id: requireId(workflowId), event: 'cancel', allowed: [] },
          state: workflowLine(snapshot).status,
        });
      actor.send(event);
      await waitFor(actor, ({ status }) => status !== 'active', { timeout: firstTasksMs }).catch(
        () => {},
      );
      return show(workflowId);
    },
  };
};

/** Hosts the workflows: their actors, and what people ask of them. */
export const createWorkflowHost = (ports: WorkflowHostPorts): WorkflowHost => {
  const actors = createActors(ports);
  return {
    service: createService(ports, actors),
    restore: async () => {
      for (const { taskId, pending } of await ports.store.workflows())
        if (pending) await actors.takeUp(taskId);
    },
    stop: actors.stop,
    reportPathsOf: (labels) => {
      const own = [...actors.loaded].find(([id]) => labels.includes(workflowKey(id)));
      if (own === undefined) return [];
      const { context } = own[1].actor.getSnapshot();
      const gates = context.definition.phases.flatMap((phase) => phase.gates);
      const reports = gates
        .flatMap(({ checks }) => checks)
        .flatMap((check) => ('reports' in check ? check.reports : []));
      return [...new Set(reports.map((path) => fillIn(context, path)))];
    },
  };
};
