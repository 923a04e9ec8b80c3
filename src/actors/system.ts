import { createActor, type EventObject, fromPromise, type SnapshotFrom } from 'xstate';
import type { Acted, AgentLimits, Thought } from '../machines/agent-context.ts';
import { agentMachine } from '../machines/agent-machine.ts';
import type { Slots } from '../machines/explain.ts';
import { supervisorMachine } from '../machines/supervisor-machine.ts';
import type { AttemptKey, Finding, Role, RunOptions, TaskId } from '../machines/task.ts';
import { roleProfiles } from './agent/roles.ts';
import { type AgentWorker, createAgentWorker, type Seat } from './agent/worker.ts';
import { type Attempts, createAttempts, type Supervisor } from './attempts.ts';
import { durable } from './durable.ts';
import { type EventType, entry } from './events.ts';
import { createJournal, type Journal } from './journal.ts';
import { createMetrics, type Tally } from './metrics.ts';
import type { Model } from './model/port.ts';
import { createResults } from './results.ts';
import { createService, type TaskService } from './service.ts';
import type { Store } from './store/port.ts';
import { createTaskHost, type TaskHost } from './task-host.ts';
import { provideTaskWork } from './task-work.ts';
import type { Tracker } from './tracker/port.ts';
import { createVerify } from './verify.ts';
import type { Workspace } from './workspace/port.ts';

/** Plain values that the configuration decides. */
export interface SystemOptions {
  readonly projectRoot: string;
  readonly cap: number;
  readonly roleCaps: Readonly<Partial<Record<Role, number>>>;
  readonly queueLimit: number;
  readonly maxTurns: number;
  readonly maxTokensTotal: number | null;
  /** Overrides the roles' own wall limit (ms). */
  readonly timeoutMs: number | null;
  readonly maxRetries: number;
  /** Tokens of one answer. */
  readonly maxTokens: number;
  readonly defaultModel: string;
  /** The variable that would hold the provider's key. */
  readonly credentialVariable: string;
}

export interface SystemPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly workspace: Workspace;
  /** The model for a requested name, or null when it cannot be called for want of a credential. */
  readonly selectModel: (requested: string) => Model | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly redact: (text: string) => string;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface System {
  readonly service: TaskService;
  readonly journal: Journal;
  readonly tally: () => Tally;
  readonly load: () => Slots;
  /** Takes up what an earlier process left pending. */
  start(): Promise<void>;
  /** Gives no more slots, stops what runs and commits what was gathered; pending tasks stay pending. */
  stop(): Promise<void>;
}

const maxRepeats = 6;
const maxNudges = 2;
const stopMs = 8_000;

const limitsFor =
  (options: SystemOptions, now: () => number) =>
  (run: RunOptions, role: Role): AgentLimits => ({
    maxTurns: run.maxTurns ?? options.maxTurns,
    maxTokensTotal: run.maxTokensTotal ?? options.maxTokensTotal,
    deadlineAt: now() + (run.timeoutMs ?? options.timeoutMs ?? roleProfiles[role].timeoutMs),
    maxRepeats,
    maxNudges,
  });

/** The agent machine with its slots filled. */
const provideAgent = (worker: AgentWorker) =>
  agentMachine.provide({
    actors: {
      prepare: fromPromise<void, Seat>(({ input, signal }) => worker.prepare(input, signal)),
      think: fromPromise<Thought, Seat & { readonly turn: number; readonly nudge: boolean }>(({ input, signal }) =>
        worker.think(input, signal),
      ),
      act: fromPromise<Acted, Seat & { readonly turn: number }>(({ input, signal }) => worker.act(input, signal)),
    },
  });

/**
 * The one place that creates root actors: the supervisor with its agents, and the registry of task actors. The parts
 * know each other through the ports that are tied together here.
 */
export const createSystem = (options: SystemOptions, ports: SystemPorts): System => {
  const { tracker, store, workspace, now, log } = ports;
  const journal = createJournal(store, { onError: (error) => log('progress could not be committed', { error }) });
  const results = createResults(options.projectRoot, ports.redact);
  const emit = ({ taskId, attempt }: Pick<Seat, 'taskId' | 'attempt'>, type: EventType, data: unknown): void =>
    journal.append(entry(taskId, attempt, type, now(), data));

  const chooseModel = (run: RunOptions) => {
    const name = run.model ?? options.defaultModel;
    const model = ports.selectModel(name);
    return { model, name: model?.disclaimer == null ? name : model.name };
  };
  const requireModel = (run: RunOptions) => {
    const { model, name } = chooseModel(run);
    if (model === null) throw new Error(`${options.credentialVariable} is not set`);
    return { model, name };
  };

  const worker = createAgentWorker({
    workspace,
    chooseModel: requireModel,
    findTask: (taskId) => tracker.find(taskId),
    readResults: results.read,
    emit,
    track: (key, work) => attempts.track(key, work),
    environment: ports.environment,
    maxTokens: options.maxTokens,
    now,
  });

  const agents = provideAgent(worker);
  const agentLogic: typeof agents = durable(agents, {
    now,
    commit: (next: SnapshotFrom<typeof agents>, event: EventObject) =>
      host.commitAgent(next, event, () => agents.getPersistedSnapshot(next)),
  });
  const supervisor: Supervisor = createActor(supervisorMachine.provide({ actors: { agent: agentLogic } }), {
    input: { cap: options.cap, roleCaps: options.roleCaps },
  });
  supervisor.subscribe({ error: (error) => log('the supervisor broke', { error }) });
  supervisor.on('agent.ended', ({ key }) => worker.forget(key as AttemptKey));
  const attempts: Attempts = createAttempts(supervisor);

  const load = (): Slots => {
    const { holding, waiting, cap } = supervisor.getSnapshot().context;
    return { running: holding.length, waiting: waiting.length, cap };
  };

  const lookUp = async (taskId: TaskId, run: RunOptions): Promise<Finding> => {
    const task = await host.refresh(taskId);
    return {
      exists: task !== null,
      unmet: task?.unmet ?? [],
      missingCredential: chooseModel(run).model === null ? options.credentialVariable : null,
      queueFullAt: load().waiting >= options.queueLimit ? options.queueLimit : null,
    };
  };

  const tasks = provideTaskWork({
    tracker,
    store,
    attempts,
    results,
    verify: createVerify({ workspace, environment: ports.environment, emit }),
    limits: limitsFor(options, now),
    lookUp,
    modelOf: (run) => {
      const { model, name } = chooseModel(run);
      return { name, disclaimer: model?.disclaimer ?? null };
    },
    refresh: (taskId) => host.refresh(taskId),
    contextOf: (taskId) => host.contextOf(taskId),
    flush: journal.flush,
    now,
  });
  const host: TaskHost = createTaskHost(tasks, {
    tracker,
    store,
    journal,
    now,
    log,
    wakeAgent: (key) => supervisor.getSnapshot().children[key]?.send({ type: 'DEADLINE', at: now() }),
    onCrash: (taskId) => {
      const own = Object.keys(supervisor.getSnapshot().children).filter((key) => key.startsWith(`${taskId}#`));
      for (const key of own) supervisor.send({ type: 'agent.dismissed', key: key as AttemptKey });
      supervisor.send({ type: 'slot.returned', taskId });
    },
  });

  return {
    service: createService({ tracker, store, host, lookUp, load, maxRetries: options.maxRetries }),
    journal,
    tally: createMetrics(store, journal),
    load,
    start: async () => {
      supervisor.start();
      await host.restore();
    },
    stop: async () => {
      supervisor.send({ type: 'drain' });
      host.stop();
      supervisor.stop();
      await attempts.settle(stopMs);
      journal.flush();
    },
  };
};
