import { createHash } from 'node:crypto';
import { fromPromise } from 'xstate';
import type {
  Acted,
  AgentEvent,
  Compacted,
  Delegated,
  Prepared,
  Thought,
} from '../../../machines/agent/agent-context.ts';
import { agentMachine } from '../../../machines/agent/agent-machine.ts';
import type {
  ActInput,
  CompactInput,
  DelegateInput,
  PrepareInput,
  ThinkInput,
} from '../../../machines/agent/agent-selectors.ts';
import { plural, someOf } from '../../../machines/plural.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Role,
  type TaskId,
} from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import {
  type AttemptMcpPorts,
  createAttemptMcp,
  createHandMcp,
  createServersOpener,
} from '../../agent/attempt-mcp.ts';
import { type AssistantPorts, createDelegation, type Delegation } from '../../agent/delegate.ts';
import { createLiveRuns } from '../../agent/live-runs.ts';
import type { AttemptPorts, SetUp } from '../../agent/open-attempt.ts';
import { createSteps } from '../../agent/steps.ts';
import { type AgentTurns, createAgentTurns } from '../../agent/turns.ts';
import { type EventType, entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import { costOf } from '../../model/price.ts';
import { priceForAssistant } from '../../model/price-table.ts';
import { createEgresses, type Egresses } from '../../network/egress.ts';
import type { Endpoint } from '../../network/proxy.ts';
import { attemptVariable } from '../../process/orphans.ts';
import { forAssistant, type Network } from '../../sandbox/port.ts';
import { createNoSandbox } from '../../sandbox/run-sandboxed.ts';
import { isPresent } from '../../workspace/git/plain.ts';
import type { Absent, Workspace } from '../../workspace/port.ts';
import type { Slots } from '../slots/slots.ts';
import { patiently, patientReads } from '../tasks/patient-reads.ts';
import type { Budgets } from './budgets.ts';
import type { RunningWork } from './running-work.ts';
import type { BackendSelector } from './select-assistant.ts';
import { mcpServersFor, type NetworkUser, networkAccess, type Settings } from './settings.ts';
import {
  createRegenerate,
  createSetupWorktree,
  type SetupPorts,
  type SetupWorktree,
} from './setup-worktree.ts';
import type { SystemPorts } from './system-ports.ts';

const pathsNamedAtMost = 5;

interface SetupMessage {
  readonly level: 'info' | 'warn';
  readonly message: string;
}

/** Warnings for a person before the agent begins, each with what to do. */
const absentLogs = (
  { uncommitted, ignored, install }: Absent,
  lacksPackages: boolean,
): readonly SetupMessage[] => [
  ...(uncommitted.length === 0
    ? []
    : [
        {
          level: 'warn' as const,
          message: `not in the worktree: ${plural(uncommitted.length, 'uncommitted file')} (${someOf(uncommitted, pathsNamedAtMost)}); commit what the agent needs`,
        },
      ]),
  ...(ignored.length === 0
    ? []
    : [
        {
          level: 'info' as const,
          message: `not in the worktree: ${someOf(ignored, pathsNamedAtMost)}, which git ignores; name what the agent needs in workspace.copy`,
        },
      ]),
  ...(lacksPackages && install !== null
    ? [
        {
          level: 'warn' as const,
          message: `not in the worktree: node_modules; to install it in each new one: agent config set workspace.setup '${JSON.stringify({ commands: [install], network: true })}'`,
        },
      ]
    : []),
];

type SetUpFolderPorts = Pick<SetupPorts, 'emit'> & {
  readonly workspace: Pick<Workspace, 'absent'>;
};

/** Sets up a new folder, and says what it lacks. */
const createSetUp =
  (ports: SetUpFolderPorts, setupWorktree: SetupWorktree): SetUp =>
  async (attempt: AttemptInput, workspace, signal) => {
    const [absent, failure] = await Promise.all([
      ports.workspace.absent(signal),
      setupWorktree(attempt, workspace, signal),
    ]);
    const lacksPackages =
      absent.install !== null && !(await isPresent(`${workspace.root}/node_modules`));
    if (failure === null)
      for (const told of absentLogs(absent, lacksPackages)) ports.emit(attempt, 'log', told);
    const notes = lacksPackages
      ? ['The packages that this project depends on are not installed in your folder.']
      : [];
    return { failure, notes };
  };

export interface AgentActorOptions {
  readonly ports: SystemPorts;
  readonly settings: () => Settings;
  readonly projectRoot: string;
  readonly backends: BackendSelector;
  readonly budgets: Pick<Budgets, 'refusal' | 'leftUsd'>;
  readonly journal: Journal;
  readonly findTask: (taskId: TaskId) => Promise<TrackedTask | null>;
  readonly slots: Pick<Slots, 'lendSlot' | 'regainSlot'>;
  readonly work: Pick<RunningWork, 'track' | 'addCut'>;
  readonly tellAgent: (key: AttemptKey, event: AgentEvent) => void;
}

type Key = Pick<AttemptInput, 'taskId' | 'attempt'>;

/** `always`: what the user may reach whatever the list of hosts says. */
export type NetworkOf = (
  attempt: AttemptInput,
  user: NetworkUser,
  always?: readonly Endpoint[],
) => Network;

/** The agent machine with its actors, and parts of an attempt that others need. */
export interface AgentActors {
  readonly machine: typeof agentMachine;
  /** Drops the conversation of an attempt, and ends its assistant. */
  forget(key: AttemptKey): void;
  /** Ends what the attempts of this process started beside their calls. */
  forgetAll(): Promise<void>;
  /** Says something to an agent of our own loop before its next turn. */
  note: AgentTurns['note'];
  emit(key: Key, type: EventType, data: unknown): void;
  environmentOf(key: Key): Readonly<Record<string, string>>;
  networkOf: NetworkOf;
  setupWorktree: SetupWorktree;
  regenerate: ReturnType<typeof createRegenerate>;
  /** Ends the proxies of an attempt. */
  closeNetwork(key: AttemptKey): void;
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
  'emit' | 'environmentOf' | 'networkOf' | 'endLeftovers' | 'closeNetwork'
> & { readonly closeNetworks: () => void };

/** The journal, the environment and the sandbox of an attempt, and the end of its processes. */
const createSurroundings = ({
  ports: { environment, endOrphans, now, log },
  settings,
  projectRoot,
  journal,
}: AgentActorOptions): AttemptSurroundings => {
  /** Two projects may use the same task id. */
  const project = createHash('sha256').update(projectRoot).digest('hex').slice(0, 12);
  const attemptName = (taskId: TaskId, attempt: number): string =>
    `${project}/${attemptKey(taskId, attempt)}`;
  const emit: AttemptSurroundings['emit'] = ({ taskId, attempt }, type, data) =>
    void journal.gather({ entries: [entry(taskId, attempt, type, now(), data)] });
  const egresses = new Map<AttemptKey, Egresses>();
  const egressesOf = (attempt: AttemptInput): Egresses => {
    const key = attemptKey(attempt.taskId, attempt.attempt);
    const known = egresses.get(key);
    if (known !== undefined) return known;
    const made = createEgresses(
      (seen) => emit(attempt, 'network', seen),
      () => egresses.delete(key),
    );
    egresses.set(key, made);
    return made;
  };
  const closeNetwork = (key: AttemptKey): void => egresses.get(key)?.close();
  return {
    emit,
    networkOf: (attempt, user, always = []) => {
      const access = networkAccess(settings(), attempt, user);
      if (typeof access === 'boolean') return access;
      const name = user.kind === 'server' ? `server ${user.name}` : user.kind;
      return egressesOf(attempt).of(name, access, always);
    },
    closeNetwork,
    closeNetworks: () => [...egresses.keys()].forEach(closeNetwork),
    environmentOf: ({ taskId, attempt }) => ({
      ...environment,
      [attemptVariable]: attemptName(taskId, attempt),
    }),
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
  { environmentOf, networkOf }: Pick<AgentActors, 'environmentOf' | 'networkOf'>,
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
  networkFor: (attempt, always) => networkOf(attempt, { kind: 'assistant' }, always),
  openServers,
  silentMs: () => settings().idleMs,
});

export const createAgentActors = (options: AgentActorOptions): AgentActors => {
  const { ports, settings, backends, journal } = options;
  const { store, workspace, sandbox, results, now } = ports;

  const surroundings = createSurroundings(options);
  const { emit, environmentOf, networkOf, endLeftovers } = surroundings;
  const calls: CurrentCalls = new Map();
  const setupPorts = { settings, workspace, sandbox, networkOf, environmentOf, emit };
  const setupWorktree = createSetupWorktree(setupPorts);
  const images = {
    attached: (taskId: string) => patiently(() => store.images.attached(taskId)),
    find: (taskId: string, digest: string) => patiently(() => store.images.find(taskId, digest)),
  };
  const attempt: AttemptPorts = {
    workspace,
    findTask: options.findTask,
    images,
    readResults: results.read,
    emit,
    stepsOf: (key) =>
      createSteps(patientReads(store), journal, key, () =>
        calls.get(attemptKey(key.taskId, key.attempt)),
      ),
    isBranchReviewed: () => settings().merge === 'none',
    setUp: createSetUp(setupPorts, setupWorktree),
  };
  const onInterrupted = () => settings().onInterrupted;
  const profileOf = (role: Role) => settings().roles[role];
  const mcpPorts: AttemptMcpPorts = {
    ...(ports.mcp ?? { variables: {}, pinsFile: null, version: '' }),
    emit,
    sandbox,
    networkOf,
    environmentOf,
    // What was merged without a person is not the user's own.
    usersFiles: () => (attempt.isBranchReviewed() ? workspace.usersFiles : null),
    serversOf: (role) => mcpServersFor(settings(), role),
  };
  const openServers = createServersOpener(mcpPorts);
  const turns = createAgentTurns({
    attempt,
    model: {
      chooseModel: backends.requireModel,
      priceFor: backends.priceFor,
      wasCut: async ({ taskId, attempt: number }) => {
        const [begun, ended] = await patiently(async () => [
          await store.latest(taskId, 'api_call_start'),
          await store.latest(taskId, 'api_call_complete'),
        ]);
        return begun?.attempt === number && begun.seq > (ended?.seq ?? 0);
      },
      budgetRefusal: ({ options: run, role }) => options.budgets.refusal(run, role),
      emit,
      addCut: options.work.addCut,
      images,
      maxTokens: () => settings().maxTokens,
      now,
    },
    tools: {
      workspace,
      emit,
      sandbox,
      networkOf,
      environmentOf,
      logs: results,
      onInterrupted,
      images: store.images,
    },
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
    addCut: options.work.addCut,
    attempt,
    assistant: createAssistantPorts(options, surroundings, createHandMcp(openServers, mcpPorts)),
    run: {
      emit,
      report: (key, event) => options.tellAgent(key, { ...event, at: now() }),
      costOf: (model, used) => costOf(priceForAssistant(settings(), model ?? ''), used),
      budgetRefusal: ({ options: run, role }) => options.budgets.refusal(run, role),
      leftUsd: ({ options: run }) => options.budgets.leftUsd(run),
      now,
    },
    profileOf,
    endLeftovers,
    onInterrupted,
  });

  /** One that waited for a person ends with its agent. */
  const endLive = async (key: AttemptKey): Promise<void> => {
    const ended = await live.stop(key);
    if (ended !== null) options.work.addCut(key, ended.spent);
  };
  return {
    machine: provideAgent(turns, delegation, calls, options),
    forget: (key) => {
      void options.work.track(key, turns.forget(key));
      void options.work.track(key, endLive(key));
      surroundings.closeNetwork(key);
    },
    forgetAll: async () => {
      live.stopAll();
      await turns.forgetAll();
      surroundings.closeNetworks();
    },
    note: turns.note,
    emit,
    environmentOf,
    networkOf,
    endLeftovers,
    setupWorktree,
    regenerate: createRegenerate(setupPorts, () => settings().landing),
    closeNetwork: surroundings.closeNetwork,
  };
};
