import type { EventObject } from 'xstate';
import type { AgentEvent } from '../machines/agent-context.ts';
import type { AgentSnapshot, agentMachine } from '../machines/agent-machine.ts';
import { ServiceError } from '../machines/errors.ts';
import { atWork, pauseOf } from '../machines/supervisor-context.ts';
import type { AttemptKey, Finding, Role, RunOptions, TaskId } from '../machines/task.ts';
import { holderOf } from '../machines/tracked-task.ts';
import { createAgentActors } from './engine/agent-actors.ts';
import { createAgentRuns } from './engine/agent-runs.ts';
import { missingFor } from './engine/backend-choice.ts';
import type { SlotUse } from './engine/explain.ts';
import { failDependents } from './engine/fail-dependents.ts';
import { createInvokedActors } from './engine/invoked.ts';
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
import { type Counters, createCounters } from './journal/counters.ts';
import { durable } from './journal/durable-actor.ts';
import { createJournal, type Journal } from './journal/journal.ts';
import { mayContinue, savedSlot } from './journal/snapshots.ts';
import { withTimeout } from './process/with-timeout.ts';

export interface System {
  readonly service: TaskService;
  readonly journal: Journal;
  readonly counters: () => Counters;
  readonly slotUse: () => SlotUse;
  /** Whether the supervisor is at work. */
  readonly check: () => { readonly ok: boolean; readonly detail: string };
  /** Takes new settings for everything that begins from now on; a smaller cap lets who runs go on. */
  reconfigure(settings: Settings): void;
  readonly settings: () => Settings;
  /** Takes up what an earlier process left pending. */
  start(): Promise<void>;
  /** Gives no more slots, and lets who runs go on for so long (ms). */
  drain(ms: number): Promise<void>;
  /** Gives no more slots, stops what runs and commits what was gathered; pending tasks stay pending. */
  stop(): Promise<void>;
}

const stopMs = 8_000;

/**
 * The one place that creates root actors: the supervisor with its agents, and the registry of task actors. The parts
 * know each other through the ports that are tied together here.
 */
export const createSystem = (initial: Settings, ports: SystemPorts): System => {
  let settings = initial;
  const { tracker, store, workspace, results, now, log } = ports;
  const journal = createJournal(store, {
    onError: (error) => log('progress could not be committed', { error }),
    onListenerError: (error) => log('what was committed could not be told to a listener', { error }),
  });
  const { selectModel, assistants } = ports;
  const chooser = createBackendSelector({ settings: () => settings, selectModel, assistants });
  const agents = createAgentActors({
    ports,
    settings: () => settings,
    projectRoot: initial.projectRoot,
    backends: chooser,
    journal,
    findTask: async (taskId) => host.knownTask(taskId) ?? tracker.find(taskId),
    slots: () => slots,
    agentRuns: () => agentRuns,
    tellAgent: (key, event) => tellAgent(key, event),
  });
  const { environmentOf, sandboxOf, endLeftovers, emit } = agents;

  const inspected = ports.inspect === undefined ? {} : { inspect: ports.inspect };
  const agentLogic: typeof agentMachine = durable(agents.machine, {
    now,
    commit: (next: AgentSnapshot, event: EventObject) =>
      host.commitAgent(next, event, () => agents.machine.getPersistedSnapshot(next)),
  });
  /** Before anybody who waits is given one. */
  const retakeSlots = (): void => {
    for (const { taskId } of store.tasks('pending')) {
      const seat = savedSlot(store, taskId as TaskId);
      if (seat !== null) supervisor.send({ type: 'slot.retaken', taskId: taskId as TaskId, ...seat });
    }
  };
  const supervisor = createSupervision({
    agent: agentLogic,
    input: () => capsOf(settings),
    inspected,
    dropTasks: () => host.dropAll(),
    restore: async () => {
      retakeSlots();
      await host.restore();
    },
    now,
    log,
  });
  let pause: NodeJS.Timeout | undefined;
  supervisor.on('queue.paused', ({ ms }) => {
    log('the queue is paused: one attempt after the other failed alike', { pause_ms: ms });
    clearTimeout(pause);
    pause = setTimeout(() => supervisor.send({ type: 'pause.over' }), ms).unref();
  });
  supervisor.on('agent.gone', ({ key }) => agents.forget(key as AttemptKey));
  const holdsSlot = (taskId: TaskId): boolean => savedSlot(store, taskId) !== null;
  const tellAgent = (key: string, event: AgentEvent): void => supervisor.snapshot().children[key]?.send(event);
  const slots = createSlots(supervisor, holdsSlot);
  const agentRuns = createAgentRuns(supervisor);
  const invoked = createInvokedActors();

  const load = (): SlotUse => {
    const snapshot = supervisor.snapshot();
    const { waiting, cap, queueLimit, streak } = snapshot.context;
    const isPaused = (snapshot.matches('paused') || snapshot.matches('probing')) && streak !== null;
    const paused = isPaused
      ? `the queue is paused: one attempt after the other failed alike (${streak.message}); it is tried again every ${pauseOf(snapshot.context) / 1_000} s`
      : null;
    return { running: atWork(snapshot.context).length, waiting: waiting.length, cap, limit: queueLimit, paused };
  };

  const lookUp = async (taskId: TaskId, run: RunOptions, role: Role): Promise<Finding> => {
    const task = await host.refresh(taskId);
    const chosen = await chooser.afterLoginCheck(run, role);
    return {
      exists: task !== null,
      unmet: task?.unmet ?? [],
      holder: task === null ? null : holderOf(task, tracker.actor),
      ...missingFor(chosen, settings.credentialVariable),
    };
  };

  const tasks = provideTaskActors({
    tracker,
    store,
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
      const chosen = chooser.now(run, role);
      const disclaimer = chosen.backend === 'builtin' ? (chosen.model?.disclaimer ?? null) : null;
      return { name: chosen.name, disclaimer };
    },
    backendOf: (run, role) => chooser.now(run, role).backend,
    refresh: (taskId) => host.refresh(taskId),
    contextOf: (taskId) => host.contextOf(taskId),
    knownTask: (taskId) => host.knownTask(taskId),
    priorityOf: (taskId) => host.priorityOf(taskId),
    notes: () => settings.notes,
    endLeftovers,
    flush: journal.flush,
    now,
  });
  const host: TaskCommands = createTaskCommands(tasks, {
    tracker,
    store,
    journal,
    now,
    log,
    inspected,
    tellAgent,
    whenEnded: async (taskId) => {
      await invoked.whenEnded(taskId);
      await agentRuns.whenEnded(taskId);
    },
    onCrash: (taskId) => {
      const own = Object.keys(supervisor.snapshot().children).filter((key) => key.startsWith(`${taskId}#`));
      for (const key of own) supervisor.send({ type: 'agent.dismissed', key: key as AttemptKey });
      if (!holdsSlot(taskId)) supervisor.send({ type: 'slot.returned', taskId });
    },
  });

  failDependents({
    tracker,
    journal,
    policy: () => settings.onDependencyFailure,
    failWith: host.failWith,
    log,
  });
  const watch = createTrackerWatch({ tracker, store, observe: host.observe, log });

  /** Of attempts that are over, what could not be saved when they ended. */
  const sweep = async (): Promise<void> => {
    const isOver = (taskId: TaskId, attempt: number): boolean => !mayContinue(store, taskId, attempt);
    for (const work of await workspace.sweep(isOver)) log('what an attempt changed could not be saved', { work });
  };

  return {
    service: createService({
      tracker,
      store,
      host,
      lookUp,
      load,
      requirePrice: async (run, role) => {
        const { maxCostUsd } = limitsFor(settings, run, role, now());
        if (maxCostUsd !== null) await chooser.requireCost(run, role);
      },
      requireNetwork: ({ network }) => {
        if (network !== true || settings.allowTaskNetwork) return;
        const problem = 'is not the caller’s to open; set sandbox.allow_task_network, or roles.<name>.network';
        throw new ServiceError('invalid_params', { fields: [{ path: 'options.network', problem }] });
      },
      optionsFor: (options, role) => {
        const verify = [...settings.roles[role].verify, ...(options.verify ?? [])];
        return verify.length === 0 ? options : { ...options, verify };
      },
      maxRetries: () => settings.maxRetries,
    }),
    journal,
    counters: createCounters(store, journal),
    slotUse: load,
    check: supervisor.check,
    settings: () => settings,
    reconfigure: (next) => {
      settings = next;
      supervisor.send({ type: 'caps.changed', ...capsOf(next) });
    },
    start: async () => {
      await supervisor.start();
      sweep().catch((error: unknown) => log('the folders of earlier attempts could not be looked at', { error }));
      watch.start();
    },
    drain: async (ms) => {
      supervisor.drain();
      if (ms > 0) await supervisor.whenIdle(ms);
    },
    stop: async () => {
      const watched = withTimeout(watch.stop(), stopMs, 'a look at the tracker').catch(() => {});
      supervisor.drain();
      host.stop();
      supervisor.stop();
      clearTimeout(pause);
      await Promise.all([watched, invoked.settle(stopMs), agentRuns.settle(stopMs)]);
      try {
        journal.stop();
      } catch (error) {
        log('progress could not be committed', { error });
      }
    },
  };
};
