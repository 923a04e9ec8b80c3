import { type ActorRefFrom, createActor } from 'xstate';
import { ServiceError } from '../../machines/errors.ts';
import type { WorkflowInput } from '../../machines/workflow/workflow-context.ts';
import {
  type WorkflowSnapshot,
  workflowMachine,
} from '../../machines/workflow/workflow-machine.ts';
import type { KeptReports } from '../engine/servers/kept-reports.ts';
import type { ActorRoot } from '../engine/slots/actor-system.ts';
import { createRestoreRetries } from '../engine/tasks/restore-retries.ts';
import { charts } from '../journal/chart-versions.ts';
import { durable } from '../journal/durable-actor.ts';
import { entry } from '../journal/event-types.ts';
import type { Journal } from '../journal/journal.ts';
import { type WorkflowStart, workflowKey } from '../journal/replay/replay-workflow.ts';
import { readSnapshot, restoredSnapshot } from '../journal/snapshots.ts';
import type { Change, SavedActor, Store } from '../store/port.ts';
import { provideWorkflowActors, type WorkflowActorPorts } from './workflow-actors.ts';
import { workflowLine } from './workflow-view.ts';

export interface LiveWorkflowPorts extends WorkflowActorPorts {
  readonly root: ActorRoot;
  readonly journal: Journal;
  readonly store: Pick<
    Store,
    'actor' | 'openWorkflows' | 'endedWorkflows' | 'request' | 'rememberAnswer'
  >;
  readonly reports: Pick<KeptReports, 'read' | 'remove'>;
}

type WorkflowActor = ActorRefFrom<typeof workflowMachine>;

interface Loaded {
  readonly actor: WorkflowActor;
  revision: number;
}

const workflowChange = (
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
      ...{ id, taskId: workflowId, version: charts.newest },
      pending: snapshot.status === 'active',
      changedAt: at,
      snapshot: JSON.stringify(persisted),
    },
    unchanged: { id, revision },
    entries: [entry(workflowId, 0, 'workflow', at, data, cause)],
  };
};

/** @throws UnreadableStateError */
export const savedState = (saved: SavedActor): WorkflowSnapshot =>
  readSnapshot(saved, (persisted) => workflowMachine.resolveState(persisted as never));

type Provided = ReturnType<typeof provideWorkflowActors>;

/** Saves each transition in place of the state before it. */
const createLogic = (
  provided: Provided,
  { journal, now }: Pick<LiveWorkflowPorts, 'journal' | 'now'>,
  loaded: ReadonlyMap<string, Loaded>,
) =>
  durable(provided, {
    now,
    commit: async ({ next, cause }) => {
      const own = loaded.get(next.context.workflowId);
      const answer = await journal.commit(
        workflowChange(next, provided.getPersistedSnapshot(next), {
          revision: own?.revision ?? 0,
          cause,
          at: now(),
        }),
      );
      if (answer === 'ok' && own !== undefined) own.revision += 1;
      return answer;
    },
    ...journal.deadline,
  });

/** Before its actor exists. @throws ServiceError */
const saveFirstState = async (
  provided: Provided,
  { journal, store, now }: Pick<LiveWorkflowPorts, 'journal' | 'store' | 'now'>,
  input: WorkflowInput,
): Promise<SavedActor> => {
  const first = createActor(provided, { input }).getSnapshot();
  const cause: WorkflowStart = { type: 'xstate.init', input };
  const change = workflowChange(first, provided.getPersistedSnapshot(first), {
    ...{ revision: 0, cause, at: now() },
  });
  if ((await journal.commit(change)) !== 'ok')
    throw new ServiceError('internal', { detail: 'the workflow could not be saved; try again' });
  const saved = await store.actor(workflowKey(input.workflowId));
  if (saved === null) throw new ServiceError('internal', { detail: 'the workflow was not saved' });
  return saved;
};

/** The actors of workflows: one for each that is not over. */
export const createLiveWorkflows = (ports: LiveWorkflowPorts) => {
  const { root, store, log } = ports;
  const loaded = new Map<string, Loaded>();
  const provided = provideWorkflowActors(ports);
  let stopped = false;
  const logic = createLogic(provided, ports, loaded);

  const forget = (workflowId: string, own: Loaded): void => {
    if (loaded.get(workflowId) === own) loaded.delete(workflowId);
    root.stop(own.actor);
  };
  /** Its gates have read them; what a crash leaves goes with the history of each task. */
  const removeReports = async ({ context }: WorkflowSnapshot): Promise<void> => {
    try {
      for (const { taskId } of context.tasks) await ports.reports.remove(taskId);
    } catch (error) {
      log('could not remove the reports of a workflow', { workflow: context.workflowId, error });
    }
  };
  const retries = createRestoreRetries<string>(ports.now, (workflowId) => void takeUp(workflowId));
  const load = (saved: SavedActor): Loaded => {
    const workflowId = saved.taskId;
    const actor = createActor(logic, {
      id: saved.id,
      parent: root.parent,
      snapshot: restoredSnapshot(logic, saved),
      input: undefined,
    });
    const own: Loaded = { actor, revision: saved.revision };
    loaded.set(workflowId, own);
    actor.subscribe({
      next: (snapshot) => {
        if (snapshot.status !== 'done') return;
        setImmediate(() => forget(workflowId, own));
        void removeReports(snapshot);
      },
      error: (error) => {
        forget(workflowId, own);
        if (stopped) return;
        log('the actor of a workflow failed; it is restored from its committed state', {
          ...{ workflow: workflowId, error },
        });
        retries.later(workflowId);
      },
    });
    actor.start();
    return own;
  };
  const takeUp = async (workflowId: string): Promise<void> => {
    try {
      const saved = await store.actor(workflowKey(workflowId));
      if (stopped || saved?.pending !== true || loaded.has(workflowId)) return;
      savedState(saved);
      load(saved);
      retries.forget(workflowId);
    } catch (error) {
      log('could not restore a workflow; the server tries again', {
        ...{ workflow: workflowId, error },
      });
      retries.later(workflowId);
    }
  };
  const begin = async (input: WorkflowInput): Promise<WorkflowActor> =>
    load(await saveFirstState(provided, ports, input)).actor;
  return {
    loaded,
    begin,
    takeUp,
    failing: retries.waiting,
    stop: () => {
      stopped = true;
      retries.stop();
      for (const [workflowId, own] of [...loaded]) forget(workflowId, own);
    },
  };
};
