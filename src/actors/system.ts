import { basename } from 'node:path';
import { isServiceError } from '../machines/errors.ts';
import type { TaskCommand } from '../machines/task/task-context.ts';
import type { AttemptKey, TaskId } from '../machines/task.ts';
import { createAttempts } from './engine/attempts/attempts.ts';
import { createBudgets, freeBudgets } from './engine/attempts/budgets.ts';
import { createInvokedActors } from './engine/attempts/invoked.ts';
import {
  createRunChoices,
  createRunLookUp,
  endLimits,
  limitsOfProvider,
} from './engine/attempts/run-choices.ts';
import { createBackendSelector } from './engine/attempts/select-assistant.ts';
import { capsOf, type Settings, wallLimitMs } from './engine/attempts/settings.ts';
import type { SystemPorts } from './engine/attempts/system-ports.ts';
import { provideStateWork } from './engine/attempts/task-state-work.ts';
import { createVerify, type WatchReports } from './engine/attempts/verify.ts';
import type { ForgeOf } from './engine/importing/import-issues.ts';
import { createSources, type Sources } from './engine/importing/sources.ts';
import {
  createMergeQueue,
  type MergeQueue,
  type MergeQueuePorts,
} from './engine/merging/merge-queue.ts';
import { createPassedTrees, createTrainProof } from './engine/merging/prove-train.ts';

import { createMergeRadar, type MergeRadar } from './engine/merging/radar.ts';
import { sendsBack, withRework } from './engine/merging/rework.ts';
import {
  createPullRequests,
  nowhere,
  type PullRequests,
} from './engine/publishing/pull-requests.ts';
import type { SlotUse } from './engine/queries/explain.ts';
import { createHeldFolders } from './engine/servers/held-folders.ts';
import { createKeptReports, type KeptReports } from './engine/servers/kept-reports.ts';
import { createLeaseKeeper } from './engine/servers/lease.ts';
import { createNodeId, createTaskOwners, watchTakes } from './engine/servers/task-owner.ts';
import { createExecuteChecks } from './engine/service/execute-task.ts';
import { createRoutedService } from './engine/service/routed-service.ts';
import { createTaskService, type TaskService } from './engine/service/task-service.ts';
import { createActorRoot } from './engine/slots/actor-system.ts';
import { createSlotSharing } from './engine/slots/share-slots.ts';
import {
  createSupervision,
  endQueuePauses,
  type Supervision,
  slotUseOf,
} from './engine/slots/supervision.ts';

import { createDependencyWaits, tellDependents } from './engine/tasks/dependency-waits.ts';
import { inspectCommitted } from './engine/tasks/inspect-committed.ts';
import { patientReads } from './engine/tasks/patient-reads.ts';
import { createTaskStart, type TaskStart } from './engine/tasks/start-tasks.ts';
import { createTaskCommands } from './engine/tasks/task-commands.ts';
import { createTaskHost } from './engine/tasks/task-host.ts';

import { createTrackerWatch } from './engine/tasks/watch-tracker.ts';
import { mergeData, mergeEntry } from './journal/event-types.ts';
import { createJournal, type Journal } from './journal/journal.ts';
import { savedSnapshot } from './journal/snapshots.ts';
import { withTimeout } from './process/deadline.ts';
import { createProcessDurations, timed } from './store/durations.ts';
import type {
  Answer,
  Counters,
  NewEntry,
  NodeLoad,
  Store,
  StoreLeases,
  StoreNode,
} from './store/port.ts';
import { reportPathsOf } from './workflows/report-paths.ts';
import {
  createRoutedWorkflows,
  createWorkflowHost,
  type WorkflowService,
} from './workflows/workflow-host.ts';

interface ServerOfStore extends StoreNode, Omit<NodeLoad, 'node'> {
  readonly isThis: boolean;
}

export interface System {
  readonly service: TaskService;
  readonly workflows: WorkflowService;
  readonly journal: Journal;
  readonly counters: () => Answer<Counters>;
  /** Counts only calls of this process. */
  readonly durations: ReturnType<typeof createProcessDurations>['read'];
  readonly slotUse: () => SlotUse;
  /** The servers of its store; null when no other one can use it. */
  readonly servers: (() => Promise<readonly ServerOfStore[]>) | null;
  /** Tasks and workflows that no server has: none that runs knows their charts. */
  readonly withoutServer: StoreLeases['withoutServer'];
  /** Pending tasks and workflows of this server that it could not load; it tries again. */
  readonly notLoaded: () => readonly string[];
  /** One sentence on the supervisor. */
  readonly check: Supervision['check'];
  readonly checkMerges: MergeQueue['check'];
  /** Something moved in a repository of the forge. */
  wakeForge(repository: string): Promise<void>;
  /** Its key is another: what the one before was refused for a while may be asked again. */
  providerChanged(provider: string): void;
  /** Takes effect for everything that begins later; a smaller cap stops no running agent. */
  reconfigure(settings: Settings): void;
  readonly settings: () => Settings;
  /** Restores the pending tasks of an earlier process. */
  start(): Promise<void>;
  /** Gives no more slots and waits for running agents, at most `ms`. */
  drain(ms: number): Promise<void>;
  /** Stops everything and commits gathered changes; pending tasks stay pending. */
  stop(): Promise<void>;
}

const stopMs = 8_000;

/** The parts of a server that shares its store; null for one that does not. */
const createSharing = (
  settings: () => Settings,
  { store, shared, log }: SystemPorts,
  node: string,
) => {
  if (shared === undefined) return null;
  const { notices } = shared;
  const slots = createSlotSharing({
    store,
    node,
    notices,
    log,
    settings: () => {
      const { cap: pool, sharedCap: cap, ownRoles: roles } = settings();
      return { cap, pool, roles };
    },
  });
  return { slots, notices, calls: shared.calls({ node, log }) };
};

const openJournal = ({ leaseMs }: Settings, { store, shared, now, log }: SystemPorts) => {
  const node = createNodeId(now(), shared?.name);
  const journal = createJournal(store, {
    node,
    // A server that cannot reach the store for so long has ended by itself.
    outageMs: shared === undefined ? undefined : leaseMs,
    onError: (error) => log('could not save changes; the server tries again', { error }),
    onRefused: (error, id) => log('the store refuses a change; it is not saved', { id, error }),
    onListenerError: (error) => log('a listener of the journal failed', { error }),
  });
  return { node, journal };
};
type OpenedJournal = ReturnType<typeof openJournal>;

/** Servers that share tasks may have folders of each other's attempts. */
const withHeldFolders = (ports: SystemPorts, { journal }: OpenedJournal): SystemPorts => {
  const { workspace, store, shared } = ports;
  if (shared === undefined) return ports;
  return {
    ...ports,
    workspace: createHeldFolders(workspace, {
      store: patientReads(store),
      journal,
      server: shared.name,
    }),
  };
};

/** The parts that actors run in, each after those that it needs. */
const createParts = (
  settings: () => Settings,
  ports: SystemPorts,
  { node, journal }: OpenedJournal,
) => {
  const { tracker, store, shared, workspace, selectModel, assistants, inspect, now, log } = ports;
  const root = createActorRoot(inspect === undefined ? undefined : inspectCommitted(inspect));
  const sharing = createSharing(settings, ports, node);
  const { leaseMs } = settings();
  const lease = createLeaseKeeper({ store, node, leaseMs, shared, onLost: ports.onLeaseLost, log });
  const caps = () => capsOf(settings(), sharing?.slots.slots());
  const supervisor = createSupervision({ root, input: caps, now, log });
  const agentActor = (key: string) => supervisor.snapshot().children[key];
  const returnSlot = (taskId: TaskId): void => supervisor.send({ type: 'slot.returned', taskId });
  const host = createTaskHost({ root, tracker, store, journal, agentActor, returnSlot, now });
  const backends = createBackendSelector({ settings, selectModel, assistants, log });
  const budgets = createBudgets({ store, settings, backends, flush: journal.flush, now });
  const attempts = createAttempts({
    ports,
    budgets,
    settings,
    journal,
    supervisor,
    host,
    backends,
    agentActor,
  });
  const lookUp = createRunLookUp(
    ...([tracker, host, settings, backends, budgets] as const),
    // Another server that shares the store takes the task.
    shared !== undefined && workspace.refusal() !== null ? async () => null : workspace.problem,
  );
  const waits = createDependencyWaits({
    tracker,
    viewOf: host.views.viewOf,
    policy: () => settings().onDependencyFailure,
  });
  return {
    node,
    journal,
    root,
    supervisor,
    agentActor,
    host,
    backends,
    budgets,
    attempts,
    lookUp,
    waits,
    returnSlot,
    caps,
    sharing,
    lease,
  };
};
type Parts = ReturnType<typeof createParts>;

/** The edit or merge is done: what a store that is away did not take stays gathered, and is tried again. */
const createRecord =
  (journal: Parts['journal']) =>
  async (entry: NewEntry): Promise<void> => {
    journal.gather({ entries: [entry] });
    await (async () => journal.flush())().catch(() => 'later');
  };

/** The commands of the queue of merges to tasks, which merge by it. */
const createMergeCommands = (
  settings: () => Settings,
  commands: () => Pick<ReturnType<typeof createTaskCommands>, 'ask'>,
  log: SystemPorts['log'],
): Pick<MergeQueuePorts, 'sendBack' | 'reopen'> => {
  const ask = async (taskId: TaskId, command: TaskCommand): Promise<void> => {
    try {
      await commands().ask(taskId, command);
    } catch (error) {
      // Somebody may have begun something else with it.
      if (!isServiceError(error)) throw error;
      const { type } = command;
      log('a task does not go on after its merge', { task: taskId, type, why: error.message });
    }
  };
  return {
    sendBack: async (taskId, attempt, merged) => {
      const { landing, maxRetries } = settings();
      const rework = sendsBack(merged, landing, 0);
      const review = { type: 'review', verdict: 'request_changes', attempt, comments: [] } as const;
      if (rework !== null) await ask(taskId, { ...review, maxRetries, rework });
    },
    reopen: (taskId, reason) => ask(taskId, { type: 'reopen', reason }),
  };
};

/** The task machine with its actors, and the commands to them. */
const createTasks = (
  settings: () => Settings,
  ports: SystemPorts,
  parts: Parts,
  watchReports: WatchReports,
) => {
  const { tracker, store, workspace, sandbox, results, now, log } = ports;
  const { node, journal, root, supervisor, agentActor, host, backends, returnSlot } = parts;
  const { attempts, budgets, lookUp, waits, lease } = parts;
  const { slots, work, agents, runs: agentRuns } = attempts;
  const { emit, endLeftovers, networkOf, environmentOf } = agents;
  const invoked = createInvokedActors();
  const limitMs: Parameters<typeof createVerify>[0]['limitMs'] = ({ options, role }) =>
    wallLimitMs(settings(), options, role);
  const choices = createRunChoices(settings, backends, now);
  const proof = createTrainProof({
    ...agents,
    settings,
    workspace,
    sandbox,
    passed: createPassedTrees(ports.passedTreesFile ?? null, now),
    attemptOf: async (taskId, attempt) => {
      const { role, options } = (await host.views.snapshotOf(taskId)).context;
      return { taskId, attempt, role: role ?? 'engineer', options };
    },
  });
  const merges = createMergeQueue({
    root,
    node,
    journal,
    store,
    tracker,
    workspace,
    results,
    proof,
    now,
    log,
    latestAttempt: async (id) => (await host.views.snapshotOf(id)).context.attempt,
    maxBatch: () => settings().landing.maxBatch,
    signs: () => settings().landing.sign,
    ...createMergeCommands(settings, () => commands, log),
    record: createRecord(journal),
  });
  endLimits({ journal, supervisor, live: host.live, choices, now });
  const machine = provideStateWork({
    tracker,
    store,
    slots,
    agentRuns,
    invoked,
    results,
    workspace,
    host,
    lookUp,
    waits,
    budgets,
    emit,
    endLeftovers,
    merges,
    now,
    choices,
    verify: createVerify({
      workspace,
      sandbox,
      networkOf,
      environmentOf,
      limitMs,
      emit,
      watchReports,
    }),
    flush: journal.flush,
  });
  const commands: ReturnType<typeof createTaskCommands> = createTaskCommands(machine, {
    node,
    root,
    host,
    tracker,
    store,
    journal,
    agentActor,
    now,
    log,
    waits,
    lookUp,
    observesRest: lease.isFirst,
    whenEnded: async (taskId) => {
      await invoked.whenEnded(taskId);
      await work.whenTaskEnded(taskId);
    },
    returnSlot,
    onCrash: (taskId) => {
      journal.discard(taskId);
      const own = Object.keys(supervisor.snapshot().children).filter((key) =>
        key.startsWith(`${taskId}#`),
      );
      for (const key of own) supervisor.send({ type: 'agent.dismissed', key: key as AttemptKey });
    },
  });
  return { commands, invoked, merges, proof };
};

type Tasks = ReturnType<typeof createTasks>;

/** Follows changes by others in the tracker, and tells tasks of their dependencies. */
const watchTracker = (
  settings: () => Settings,
  { tracker, store, now, log }: SystemPorts,
  { journal, host, waits }: Parts,
  { failWith, observe }: Tasks['commands'],
) => {
  tellDependents({
    tracker,
    journal,
    waits,
    failWith,
    now,
    log,
    viewOf: host.views.viewOf,
    policy: () => settings().onDependencyFailure,
  });
  const { isPending, onRest } = host.live;
  return createTrackerWatch({ tracker, store, isPending, onRest, observe, log });
};

/** Writes merges by others into the journal, as those of this server. */
const watchMerges = (
  { workspace, results, now, log }: SystemPorts,
  { journal }: Parts,
): (() => void) =>
  workspace.watchMerges({
    merged: ({ taskId, attempt, ...merged }) => {
      journal.gather({ entries: [mergeEntry(taskId, attempt, merged, now())] });
      results
        .noteMerge(taskId, attempt, mergeData(merged).message, now())
        .catch((error: unknown) => log('could not note a merge in the results', { error }));
    },
    failed: (error) => log('could not look for merges by others', { error }),
  });

/** Measures the calls of the tracker and the commits. */
const timedPorts = (ports: SystemPorts) => {
  const { observe, read } = createProcessDurations();
  const { tracker, store } = ports;
  return {
    read,
    ports: {
      ...ports,
      tracker: timed(
        tracker,
        () => true,
        (seconds) => observe('tracker_call', seconds),
      ),
      store: timed(
        store,
        (method) => method === 'commit',
        (seconds) => observe('store_commit', seconds),
      ),
    },
  };
};

/** The work of attempts, with what the queue of merges and the radar know of it. */
const createWorkReads = (
  settings: () => Settings,
  { workspace, now, log }: SystemPorts,
  { journal, attempts, host }: Parts,
  merges: MergeQueue,
) => {
  const radar = createMergeRadar({
    journal,
    now,
    log,
    look: workspace.radar,
    landing: () => settings().landing,
    note: attempts.agents.note,
  });
  const { isPending } = host.live;
  const { contextOf } = host.views;
  return { radar, workOf: radar.withSeen(withRework(merges.workOf, { isPending, contextOf })) };
};

const hostWorkflows = (
  { tracker, store, workspace, workflows, now, log }: SystemPorts,
  { root, journal, node }: Parts,
  {
    service,
    reports,
    settings,
  }: {
    readonly service: TaskService;
    readonly reports: KeptReports;
    readonly settings: () => Settings;
  },
) =>
  createWorkflowHost({
    root,
    node,
    journal,
    tracker,
    store,
    workspace,
    service,
    reports,
    now,
    log,
    definition: workflows.definition,
    project: basename(settings().projectRoot),
    reasonOf: async (taskId) =>
      (await tracker.find(taskId))?.closeReason ??
      (await savedSnapshot(store, taskId)).context.reason ??
      '',
  });

/** Hands requests about the tasks of another server to that server. */
const routeToServers = (
  { store }: SystemPorts,
  { node, sharing }: Parts,
  service: TaskService,
  workflows: WorkflowService,
) => {
  if (sharing === null) return { service, workflows };
  const { ask, answerWith } = sharing.calls;
  const ownerOf = createTaskOwners(store, node);
  const tasks = createRoutedService(service, { node, ask, ownerOf });
  const others = createRoutedWorkflows(workflows, { node, ask, ownerOf });
  answerWith((method, params) => others.answer(method, params) ?? tasks.answer(method, params));
  return { service: tasks.service, workflows: others.service };
};

interface LivingParts {
  readonly commands: Tasks['commands'];
  readonly invoked: Tasks['invoked'];
  readonly tasks: TaskStart;
  readonly merges: MergeQueue;
  readonly pullRequests: PullRequests;
  readonly sources: Sources;
  readonly radar: MergeRadar;
  readonly watch: ReturnType<typeof watchTracker>;
  readonly workflows: ReturnType<typeof hostWorkflows>;
}

/** The order in which the parts begin and end. */
const createLife = (
  ports: SystemPorts,
  parts: Parts,
  { commands, invoked, merges, pullRequests, radar, sources, tasks, watch, workflows }: LivingParts,
): Pick<System, 'start' | 'drain' | 'stop' | 'notLoaded'> => {
  const { log } = ports;
  const { journal, supervisor, attempts, lease, sharing, caps } = parts;
  const queuePauses = endQueuePauses(supervisor, log);
  let stopMergeWatch = (): void => {};
  /** Continues the tasks and workflows of a server that has ended. */
  const takeUp = async (): Promise<void> => {
    sharing?.slots.look();
    await tasks.takeUpMissing();
    await merges.restore();
    await pullRequests.restore();
    await sources.restore();
    await workflows.restore();
  };
  const drop = (ids: readonly string[]): void =>
    void commands
      .drop(ids as readonly TaskId[])
      .catch((error: unknown) =>
        log('could not look at tasks that another server took', { error, tasks: ids }),
      );
  if (sharing !== null) watchTakes(parts, drop);
  return {
    notLoaded: () => [
      ...tasks.notLoaded(),
      ...merges.failing(),
      ...pullRequests.failing(),
      ...sources.failing(),
      ...workflows.failing(),
    ],
    start: async () => {
      await lease.start(takeUp);
      await sharing?.slots.start({
        supervisor,
        changed: () => supervisor.send({ type: 'caps.changed', ...caps() }),
        takeUp: tasks.takeUp,
        drop,
      });
      sharing?.notices.on((notice) => {
        if (notice === 'left') lease.look();
      });
      await merges.restore();
      await pullRequests.restore();
      await sources.restore();
      await tasks.start();
      await workflows.restore();
      watch.start();
      stopMergeWatch = watchMerges(ports, parts);
      radar.start();
      pullRequests.start();
      await sources.start();
    },
    drain: async (ms) => {
      supervisor.drain();
      lease.takeNoMore();
      await sharing?.slots.stop();
      if (ms > 0) await supervisor.whenIdle(ms);
    },
    stop: async () => {
      stopMergeWatch();
      radar.stop();
      await sharing?.slots.stop();
      if (sharing !== null)
        await withTimeout(sharing.calls.stop(), stopMs, 'a call of another server').catch(() => {});
      const watched = withTimeout(watch.stop(), stopMs, 'a look at the tracker').catch(() => {});
      supervisor.drain();
      workflows.stop();
      merges.stop();
      pullRequests.stop();
      sources.stop();
      commands.stop();
      parts.waits.stop();
      supervisor.stop();
      queuePauses.stop();
      const tools = withTimeout(attempts.agents.forgetAll(), stopMs, 'a server of tools');
      await Promise.all([
        watched,
        tools.catch(() => {}),
        invoked.settle(stopMs),
        attempts.work.settle(stopMs),
      ]);
      try {
        await withTimeout((async () => journal.stop())(), stopMs, 'the last commit');
      } catch (error) {
        log('could not save the last changes', { error });
      }
      // Its last commit would renew the lease.
      await lease.stop();
      sharing?.notices.tell('left');
    },
  };
};

const serversOf = (store: Pick<Store, 'nodes' | 'loads'>, node: string) => async () => {
  const [nodes, loads] = await Promise.all([store.nodes(), store.loads()]);
  return nodes.map((one) => {
    const { running = 0, waiting = 0 } = loads.find((load) => load.node === one.node) ?? {};
    return { ...one, running, waiting, isThis: one.node === node };
  });
};

/** Connects the parts through their ports. The supervisor, tasks and workflows have one root. */
export const createSystem = (initial: Settings, given: SystemPorts): System => {
  let current = initial;
  const { ports: timedOnes, read: durations } = timedPorts(given);
  const opened = openJournal(initial, timedOnes);
  const ports = withHeldFolders(timedOnes, opened);
  const { shared, workspace, log } = given;
  const refusal = shared === undefined ? null : workspace.refusal();
  if (refusal !== null)
    log('this server runs no agents; servers that share its store take its tasks', {
      why: refusal,
    });
  const settings = (): Settings => {
    current = given.newest?.(current) ?? current;
    return refusal === null ? current : { ...current, ownRoles: [] };
  };
  const { tracker, store, now } = ports;
  const parts = createParts(settings, ports, opened);
  const { journal, supervisor, host, backends, lookUp } = parts;
  const reports = createKeptReports({
    folder: ports.workflows.reportsFolder,
    pathsOf: async (taskId) => reportPathsOf(store, (await tracker.find(taskId))?.labels ?? []),
  });
  const { commands, invoked, merges, proof } = createTasks(settings, ports, parts, reports.watch);
  const { node, attempts } = parts;
  const { logic: agent } = attempts;
  const tasks = createTaskStart({ ...ports, node, supervisor, commands, agent });
  const watch = watchTracker(settings, ports, parts, commands);
  const slotUse = (): SlotUse => slotUseOf(supervisor.snapshot());
  const runRules = createExecuteChecks(settings, backends, parts.budgets, now);
  const { radar, workOf } = createWorkReads(settings, ports, parts, merges);
  const { root, journal: written } = parts;
  const pullRequests = createPullRequests({
    root,
    node,
    journal: written,
    store,
    now,
    log: ports.log,
    workspace: ports.workspace,
    place: ports.forge ?? nowhere,
    status: (taskId) => service.status(taskId),
    review: (taskId, review) => service.review(taskId, review),
    update: (...given) => service.update(...given),
    settings: () => settings().publishing,
  });

  const forgeOf: ForgeOf =
    ports.forgeOf ?? (async () => (await nowhere(AbortSignal.abort())).forge);
  const service: TaskService = createTaskService({
    tracker,
    store,
    commands,
    views: host.views,
    lookUp,
    slotUse,
    supervisor: () => supervisor.snapshot().context,
    record: createRecord(journal),
    now,
    workspace: {
      ...ports.workspace,
      workOf,
    },
    merges,
    proof,
    publishing: pullRequests,
    forgeOf,
    sources: () => sources.check(),
    tell: (taskId, text, requestId) => routed.service.tell(taskId, text, requestId),
    landing: () => settings().landing,
    projectRoot: () => settings().projectRoot,
    ...runRules,
  });
  const workflows = hostWorkflows(ports, parts, { service, reports, settings });
  const routed = routeToServers(ports, parts, service, workflows.service);
  const sources = createSources({
    root,
    node,
    journal: written,
    store,
    tracker,
    now,
    log: ports.log,
    forgeOf,
    import: service.import,
    edit: service.edit,
    status: service.status,
    cancel: (taskId, reason) => routed.service.cancel(taskId, reason),
    sources: () => settings().sources,
    pauseMs: () => settings().publishing.pauseMs,
  });
  const life = createLife(ports, parts, {
    commands,
    invoked,
    merges,
    pullRequests,
    radar,
    sources,
    tasks,
    watch,
    workflows,
  });

  return {
    service: routed.service,
    workflows: routed.workflows,
    journal,
    counters: store.counters,
    durations,
    slotUse,
    withoutServer: store.withoutServer,
    servers: ports.shared === undefined ? null : serversOf(store, parts.node),
    check: supervisor.check,
    checkMerges: merges.check,
    wakeForge: pullRequests.wake,
    providerChanged: (provider) =>
      supervisor.send({ type: 'backend.changed', backend: limitsOfProvider(provider) }),
    settings,
    reconfigure: (next) => {
      current = next;
      supervisor.send({ type: 'caps.changed', ...parts.caps() });
      void sources.start();
      freeBudgets({ live: host.live, now }, parts.budgets).catch((error: unknown) =>
        given.log('could not let tasks go on that wait for a budget', { error }),
      );
    },
    ...life,
  };
};
