import { createHash } from 'node:crypto';
import { fromPromise } from 'xstate';
import type {
  Acted,
  AgentEvent,
  Compacted,
  Delegated,
  Prepared,
  Thought,
} from '../../machines/agent-context.ts';
import { agentMachine } from '../../machines/agent-machine.ts';
import type {
  ActInput,
  CompactInput,
  DelegateInput,
  PrepareInput,
  ThinkInput,
} from '../../machines/agent-selectors.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Role,
  type TaskId,
} from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import {
  type AttemptMcpPorts,
  createAttemptMcp,
  createHandMcp,
  createServersOpener,
} from '../agent/attempt-mcp.ts';
import type { AssistantPorts } from '../agent/begin-assistant-run.ts';
import { createDelegation, type Delegation } from '../agent/delegate.ts';
import { createLiveRuns } from '../agent/live-runs.ts';
import type { AttemptPorts } from '../agent/open-attempt.ts';
import { createSteps } from '../agent/steps.ts';
import { type AgentTurns, createAgentTurns } from '../agent/turns.ts';
import { type EventType, entry } from '../journal/event-types.ts';
import type { Journal } from '../journal/journal.ts';
import { costOf } from '../model/price.ts';
import { attemptVariable } from '../process/orphans.ts';
import { createNoSandbox } from '../sandbox/no-sandbox.ts';
import { forAssistant, type Sandbox, withNetwork } from '../sandbox/port.ts';
import { patientReads } from './patient-reads.ts';
import type { RunningWork } from './running-work.ts';
import type { BackendSelector } from './select-assistant.ts';
import { createSetUp } from './set-up-folder.ts';
import { mcpServersFor, networkFor, type Settings } from './settings.ts';
import type { Slots } from './slots.ts';
import type { SystemPorts } from './system-ports.ts';

export interface AgentActorOptions {
  readonly ports: SystemPorts;
  readonly settings: () => Settings;
  readonly projectRoot: string;
  readonly backends: BackendSelector;
  readonly journal: Journal;
  readonly findTask: (taskId: TaskId) => Promise<TrackedTask | null>;
  readonly slots: Pick<Slots, 'lendSlot' | 'regainSlot'>;
  readonly work: Pick<RunningWork, 'track'>;
  readonly tellAgent: (key: AttemptKey, event: AgentEvent) => void;
}

type Key = Pick<AttemptInput, 'taskId' | 'attempt'>;

/** The agent machine with its actors, and parts of an attempt that others need. */
export interface AgentActors {
  readonly machine: typeof agentMachine;
  /** Drops the conversation of an attempt, and ends its assistant. */
  forget(key: AttemptKey): void;
  /** Ends what the attempts of this process started beside their calls. */
  forgetAll(): Promise<void>;
  emit(key: Key, type: EventType, data: unknown): void;
  environmentOf(key: Key): Readonly<Record<string, string>>;
  sandboxOf(attempt: Pick<AttemptInput, 'role' | 'options'>): Sandbox;
  /** Ends processes of an attempt that an earlier server left. */
  endLeftovers(taskId: TaskId, attempt: number): Promise<void>;
}

/** The signal of the call of each attempt that is at work; one at a time. */
type CurrentCalls = Map<string, AbortSignal>;

const provideAgent = (
  turns: AgentTurns,
  delegation: Delegation,
  calls: CurrentCalls,
  { slots, work: attemptWork }: Pick<AgentActorOptions, 'slots' | 'work'>,
) => {
  /** An attempt is over only after all its work has ended. */
  const tracked = <Output, Input extends AttemptInput>(
    work: (input: Input, signal: AbortSignal) => Promise<Output>,
  ) =>
    fromPromise<Output, Input>(({ input, signal }) => {
      const key = attemptKey(input.taskId, input.attempt);
      calls.set(key, signal);
      const ended = work(input, signal).finally(() => {
        if (calls.get(key) === signal) calls.delete(key);
      });
      return attemptWork.track(key, ended);
    });
  return agentMachine.provide({
    actors: {
      prepare: tracked<Prepared, PrepareInput>((input, signal) =>
        input.backend === 'builtin'
          ? turns.prepare(input, signal)
          : delegation.prepare(input, signal),
      ),
      delegate: tracked<Delegated, DelegateInput>(delegation.delegate),
      think: tracked<Thought, ThinkInput>(turns.think),
      compact: tracked<Compacted, CompactInput>(turns.compact),
      act: tracked<Acted, ActInput>(turns.act),
      lendSlot: fromPromise<void, Pick<AttemptInput, 'taskId'>>(({ input }) =>
        slots.lendSlot(input.taskId),
      ),
      regainSlot: fromPromise<void, Pick<AttemptInput, 'taskId'>>(({ input, signal }) =>
        slots.regainSlot(input.taskId, signal),
      ),
    },
  });
};

type AttemptSurroundings = Pick<
  AgentActors,
  'emit' | 'environmentOf' | 'sandboxOf' | 'endLeftovers'
>;

/** The journal, the environment and the sandbox of an attempt, and the end of its processes. */
const createSurroundings = ({
  ports: { sandbox, environment, endOrphans, now, log },
  settings,
  projectRoot,
  journal,
}: AgentActorOptions): AttemptSurroundings => {
  /** Two projects may use the same task id. */
  const project = createHash('sha256').update(projectRoot).digest('hex').slice(0, 12);
  const attemptName = (taskId: TaskId, attempt: number): string =>
    `${project}/${attemptKey(taskId, attempt)}`;
  return {
    emit: ({ taskId, attempt }, type, data) =>
      void journal.gather({ entries: [entry(taskId, attempt, type, now(), data)] }),
    environmentOf: ({ taskId, attempt }) => ({
      ...environment,
      [attemptVariable]: attemptName(taskId, attempt),
    }),
    sandboxOf: ({ role, options: run }) => withNetwork(sandbox, networkFor(settings(), run, role)),
    endLeftovers: async (taskId, attempt) => {
      const count = await endOrphans(attemptVariable, attemptName(taskId, attempt));
      if (count > 0)
        log('ended processes that an earlier server left', {
          task_id: taskId,
          attempt,
          count,
        });
    },
  };
};

const createAssistantPorts = (
  { ports: { assistants, sandbox }, settings }: AgentActorOptions,
  environmentOf: AgentActors['environmentOf'],
  openServers: AssistantPorts['openServers'],
): AssistantPorts => ({
  find: (name) => {
    const assistant = assistants.of(name);
    if (assistant === null) throw new Error(`${name} is not configured as a backend`);
    return assistant;
  },
  modelFor: ({ options: run, role }) => run.model ?? settings().roles[role].model,
  environmentOf: (key, assistant) => ({
    ...environmentOf(key),
    ...assistants.environmentOf(assistant),
  }),
  sandboxFor: (assistant, env) =>
    assistants.sandboxed() ? forAssistant(sandbox, assistant.needs(env)) : createNoSandbox(),
  openServers,
  silentMs: () => settings().idleMs,
});

export const createAgentActors = (options: AgentActorOptions): AgentActors => {
  const { ports, settings, backends, journal } = options;
  const { store, workspace, sandbox, results, now } = ports;

  const { emit, environmentOf, sandboxOf, endLeftovers } = createSurroundings(options);
  const calls: CurrentCalls = new Map();
  const attempt: AttemptPorts = {
    workspace,
    findTask: options.findTask,
    readResults: results.read,
    emit,
    stepsOf: (key) =>
      createSteps(patientReads(store), journal, key, () =>
        calls.get(attemptKey(key.taskId, key.attempt)),
      ),
    setUp: createSetUp({ settings, workspace, sandbox, environmentOf, emit }),
  };
  const onInterrupted = () => settings().onInterrupted;
  const profileOf = (role: Role) => settings().roles[role];
  const mcpPorts: AttemptMcpPorts = {
    ...(ports.mcp ?? { variables: {}, pinsFile: null, version: '' }),
    ...{ emit, sandboxOf, environmentOf },
    serversOf: (role) => mcpServersFor(settings(), role),
  };
  const openServers = createServersOpener(mcpPorts);
  const turns = createAgentTurns({
    attempt,
    model: {
      chooseModel: backends.requireModel,
      priceFor: backends.priceFor,
      emit,
      maxTokens: () => settings().maxTokens,
      now,
    },
    tools: { workspace, emit, sandboxOf, environmentOf, logs: results, onInterrupted },
    openMcp: createAttemptMcp(openServers),
    profileOf,
    endLeftovers,
  });
  const live = createLiveRuns((key) =>
    options.tellAgent(key, { type: 'assistant.ended', at: now() }),
  );
  const delegation = createDelegation({
    live,
    track: options.work.track,
    attempt,
    assistant: createAssistantPorts(options, environmentOf, createHandMcp(openServers, mcpPorts)),
    run: {
      emit,
      report: (key, event) => options.tellAgent(key, { ...event, at: now() }),
      costOf: (model, used) => costOf(settings().prices[model ?? ''], used),
      now,
    },
    profileOf,
    endLeftovers,
    onInterrupted,
  });

  return {
    machine: provideAgent(turns, delegation, calls, options),
    forget: (key) => {
      void options.work.track(key, turns.forget(key));
      void live.stop(key);
    },
    forgetAll: async () => {
      live.stopAll();
      await turns.forgetAll();
    },
    emit,
    environmentOf,
    sandboxOf,
    endLeftovers,
  };
};
