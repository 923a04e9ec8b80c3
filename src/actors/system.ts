import { initialTransition } from 'xstate';
import type { agentMachine } from '../machines/agent-machine.ts';
import type { AttemptKey, Finding, Role, RunOptions, TaskId } from '../machines/task.ts';
import { holderOf } from '../machines/tracked-task.ts';
import { createAgentActors } from './engine/agent-actors.ts';
import { createAgentRuns } from './engine/agent-runs.ts';
import { missingFor } from './engine/backend-choice.ts';
import type { SlotUse } from './engine/explain.ts';
import { failDependents } from './engine/fail-dependents.ts';
import { inspectCommitted } from './engine/inspect-committed.ts';
import { createInvokedActors } from './engine/invoked.ts';
import { createPreparedChanges } from './engine/prepared-changes.ts';
import { endQueuePauses, slotUseOf } from './engine/queue-pauses.ts';
import { createRunRules } from './engine/run-rules.ts';
import { createBackendSelector } from './engine/select-assistant.ts';
import { capsOf, limitsFor, type Settings, wallLimitMs } from './engine/settings.ts';
import { createSlots } from './engine/slots.ts';
import { createSupervision } from './engine/supervision.ts';
import type { SystemPorts } from './engine/system-ports.ts';
import { provideTaskActors } from './engine/task-actors.ts';
import { createTaskCommands, type TaskCommands } from './engine/task-commands.ts';
import { createService, type TaskService } from './engine/task-service.ts';
import { createVerify } from './engine/verify.ts';
import { createTrackerWatch } from './engine/watch-tracker.ts';
import { transitionDeadline } from './journal/commit-answer.ts';
import { durable } from './journal/durable-actor.ts';
import { createJournal, type Journal } from './journal/journal.ts';
import { mayContinue, savedSlot } from './journal/snapshots.ts';
import { withTimeout } from './process/with-timeout.ts';
import type { Counters } from './store/port.ts';

export interface System {
  readonly service: TaskService;
  readonly journal: Journal;
  readonly counters: () => Counters;
  readonly slotUse: () => SlotUse;
  /** One sentence on the supervisor. */
  readonly check: () => { readonly ok: boolean; readonly detail: string };
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

/** The only place that creates root actors. It connects the parts through their ports. */
export const createSystem = (initial: Settings, ports: SystemPorts): System => {
  let settings = initial;
  const { tracker, store, workspace, results, now, log } = ports;
  const journal = createJournal(store, {
    onError: (error) => log('progress could not be committed', { error }),
    onListenerError: (error) => log('a listener of the journal failed', { error }),
  });
  const { selectModel, assistants } = ports;
  const backends = createBackendSelector({ settings: () => settings, selectModel, assistants });
  const agents = createAgentActors({
    ports,
    settings: () => settings,
    projectRoot: initial.projectRoot,
    backends,
    journal,
    findTask: async (taskId) => commands.knownTask(taskId) ?? tracker.find(taskId),
    slots: () => slots,
    agentRuns: () => agentRuns,
    tellAgent: (key, event) => agentActor(key)?.send(event),
  });
  const { environmentOf, sandboxOf, endLeftovers, emit } = agents;

  const inspected = ports.inspect === undefined ? {} : { inspect: inspectCommitted(ports.inspect) };
  const agentLogic: typeof agentMachine = durable(agents.machine, {
    now,
    commit: ({ next, cause }) => commands.commitAgent(next, cause, agents.machine.getPersistedSnapshot(next)),
    ...transitionDeadline,
  });
  /** Runs before any waiting task gets a slot. */
  const retakeSlots = (): void => {
    for (const { taskId } of store.tasks('pending')) {
      const slot = savedSlot(store, taskId as TaskId);
      if (slot !== null) supervisor.send({ type: 'slot.retaken', taskId: taskId as TaskId, ...slot });
    }
  };
  const supervisor = createSupervision({
    agent: agentLogic,
    input: () => capsOf(settings),
    inspected,
    dropTasks: () => commands.dropAll(),
    restore: async () => {
      retakeSlots();
      await commands.restore();
    },
    now,
    log,
  });
  const queuePauses = endQueuePauses(supervisor, log);
  supervisor.on('agent.gone', ({ key }) => agents.forget(key as AttemptKey));
  const holdsSlot = (taskId: TaskId): boolean => savedSlot(store, taskId) !== null;
  const agentActor = (key: string) => supervisor.snapshot().children[key];
  const slots = createSlots(supervisor, holdsSlot);
  const agentRuns = createAgentRuns(supervisor, (input) => {
    const [first] = initialTransition(agents.machine, input);
    const cause = { type: 'xstate.init', input, at: now() };
    return commands.commitAgent(first, cause, agents.machine.getPersistedSnapshot(first));
  });
  const invoked = createInvokedActors();
  const prepared = createPreparedChanges();

  const slotUse = (): SlotUse => slotUseOf(supervisor.snapshot());
  const lookUp = async (taskId: TaskId, run: RunOptions, role: Role): Promise<Finding> => {
    const task = await commands.refresh(taskId);
    const chosen = await backends.afterLoginCheck(run, role);
    return {
      exists: task !== null,
      unmet: task?.unmet ?? [],
      holder: task === null ? null : holderOf(task, tracker.actor),
      ...missingFor(chosen, settings.credentialVariable),
    };
  };

  const tasks = provideTaskActors({
    tracker,
    prepared,
    store,
    earlierAgent: (taskId, attempt) => commands.takeOverAgent(taskId, attempt),
    slots,
    agentRuns,
    invoked,
    results,
    workspace,
    mergeMode: () => settings.merge,
    emit,
    verify: createVerify({
      workspace,
      sandboxOf,
      environmentOf,
      limitMs: ({ options, role }) => wallLimitMs(settings, options, role),
      emit,
    }),
    limits: (run, role) => limitsFor(settings, run, role, now()),
    lookUp,
    modelOf: (run, role) => {
      const chosen = backends.now(run, role);
      const disclaimer = chosen.backend === 'builtin' ? (chosen.model?.disclaimer ?? null) : null;
      return { name: chosen.name, disclaimer };
    },
    backendOf: (run, role) => backends.now(run, role).backend,
    refresh: (taskId) => commands.refresh(taskId),
    contextOf: (taskId) => commands.contextOf(taskId),
    knownTask: (taskId) => commands.knownTask(taskId),
    priorityOf: (taskId) => commands.priorityOf(taskId),
    notes: () => settings.notes,
    endLeftovers,
    flush: journal.flush,
    now,
  });
  const commands: TaskCommands = createTaskCommands(tasks, {
    tracker,
    store,
    journal,
    prepared,
    now,
    log,
    inspected,
    agentActor,
    whenEnded: async (taskId) => {
      await invoked.whenEnded(taskId);
      await agentRuns.whenEnded(taskId);
    },
    returnSlot: (taskId) => supervisor.send({ type: 'slot.returned', taskId }),
    onCrash: (taskId) => {
      const own = Object.keys(supervisor.snapshot().children).filter((key) => key.startsWith(`${taskId}#`));
      for (const key of own) supervisor.send({ type: 'agent.dismissed', key: key as AttemptKey });
    },
  });

  failDependents({
    tracker,
    journal,
    policy: () => settings.onDependencyFailure,
    failWith: commands.failWith,
    log,
  });
  const watch = createTrackerWatch({ tracker, store, observe: commands.observe, log });

  /** Saves changes that could not be saved at the end of their attempts. */
  const sweep = async (): Promise<void> => {
    const isOver = (taskId: TaskId, attempt: number): boolean => !mayContinue(store, taskId, attempt);
    for (const work of await workspace.sweep(isOver)) log('something is left of earlier attempts', { work });
  };

  return {
    service: createService({
      tracker,
      store,
      commands,
      lookUp,
      slotUse,
      ...createRunRules(() => settings, backends, now),
    }),
    journal,
    counters: store.counters,
    slotUse,
    check: supervisor.check,
    settings: () => settings,
    reconfigure: (next) => {
      settings = next;
      supervisor.send({ type: 'caps.changed', ...capsOf(next) });
    },
    start: async () => {
      await supervisor.start();
      sweep().catch((error: unknown) => log('the folders of earlier attempts could not be checked', { error }));
      watch.start();
    },
    drain: async (ms) => {
      supervisor.drain();
      if (ms > 0) await supervisor.whenIdle(ms);
    },
    stop: async () => {
      const watched = withTimeout(watch.stop(), stopMs, 'a look at the tracker').catch(() => {});
      supervisor.drain();
      commands.stop();
      supervisor.stop();
      queuePauses.stop();
      await Promise.all([watched, invoked.settle(stopMs), agentRuns.settle(stopMs)]);
      try {
        await withTimeout((async () => journal.stop())(), stopMs, 'the last commit');
      } catch (error) {
        log('progress could not be committed', { error });
      }
    },
  };
};
