import type { InspectionEvent } from 'xstate';
import type { AgentLimits, Backend } from '../../../machines/agent/agent-context.ts';
import type { AttemptInput, Finding, Role, RunOptions, TaskId } from '../../../machines/task.ts';
import type { FoundWorkflow } from '../../../machines/workflow/workflow-narrowing.ts';
import type { McpPorts } from '../../agent/attempt-mcp.ts';
import type { Assistants } from '../../assistants/assistants.ts';
import type { EventType } from '../../journal/event-types.ts';
import type { Model } from '../../model/port.ts';
import type { Results } from '../../results/results.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { Store, StoreError } from '../../store/port.ts';
import type { ServerCallOptions, ServerCalls } from '../../store/postgres/server-calls.ts';
import type { Tracker } from '../../tracker/port.ts';
import type { MergeMode, Workspace } from '../../workspace/port.ts';
import type { ForgeOf } from '../importing/import-issues.ts';
import type { MergeQueue } from '../merging/merge-queue.ts';
import type { FindForge } from '../publishing/forge-place.ts';
import type { SharedLease } from '../servers/lease.ts';
import type { ServerNotices } from '../slots/share-slots.ts';
import type { Slots } from '../slots/slots.ts';
import type { DependencyWaits } from '../tasks/dependency-waits.ts';
import type { TaskHost } from '../tasks/task-host.ts';
import type { Budgets } from './budgets.ts';
import type { InvokedActors } from './invoked.ts';
import type { AgentRuns } from './running-work.ts';
import type { MergeSettings, Settings } from './settings.ts';
import type { VerifyCommands } from './verify.ts';

export interface RunChoices {
  readonly limits: (options: RunOptions, role: Role) => AgentLimits;
  readonly backendOf: (options: RunOptions, role: Role) => Backend;
  /** The backend whose limits hold up a run; null for the scripted model, which has none. */
  readonly limitedBackendOf: (options: RunOptions, role: Role) => string | null;
  readonly modelOf: (
    options: RunOptions,
    role: Role,
  ) => { readonly name: string; readonly disclaimer: string | null };
  readonly landing: () => MergeSettings;
  readonly mergeMode: (input: Pick<AttemptInput, 'review'>) => MergeMode | MergeSettings['style'];
  /** Comment in the tracker at the end of an attempt. */
  readonly notes: () => boolean;
}

export interface TaskActorPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly slots: Slots;
  readonly agentRuns: AgentRuns;
  readonly invoked: InvokedActors;
  readonly results: Results;
  readonly workspace: Workspace;
  readonly host: Pick<TaskHost, 'views' | 'prepared' | 'refresh' | 'takeOverAgent'>;
  readonly choices: RunChoices;
  readonly budgets: Pick<Budgets, 'parking'>;
  readonly verify: VerifyCommands;
  readonly merges: Pick<MergeQueue, 'merge'>;
  readonly emit: (
    attempt: Pick<AttemptInput, 'taskId' | 'attempt'>,
    type: EventType,
    data: unknown,
  ) => void;
  readonly lookUp: (taskId: TaskId, options: RunOptions, role: Role) => Promise<Finding>;
  readonly waits: Pick<DependencyWaits, 'wait'>;
  /** Ends processes of an attempt that an earlier server left. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
  /** Commits gathered progress, so that later entries follow it. */
  readonly flush: () => unknown;
  readonly now: () => number;
}

interface WorkflowPorts {
  /** The definition of a name, or why there is none. */
  readonly definition: (kind: string) => FoundWorkflow | string;
  /** For reports that verify commands wrote; outside the project. */
  readonly reportsFolder: string;
}

/** This server among those that share its store. */
export interface SharedPorts extends SharedLease {
  readonly notices: ServerNotices;
  /** Lets servers ask each other. Called once. */
  readonly calls: (options: Omit<ServerCallOptions, 'redact'>) => ServerCalls;
}

export interface SystemPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  /** Absent: no other server can use the store. */
  readonly shared?: SharedPorts;
  readonly workspace: Workspace;
  readonly sandbox: Sandbox;
  /** Null without a credential. */
  readonly selectModel: (requested: string) => Model | null;
  /** The settings with what came or went since, such as the key of a provider; the same for nothing. */
  readonly newest?: (settings: Settings) => Settings;
  readonly assistants: Assistants;
  readonly environment: Readonly<Record<string, string>>;
  readonly results: Results;
  /** Keeps which trees passed their test; absent: they are forgotten with the process. */
  readonly passedTreesFile?: string;
  /** Absent: pull requests go nowhere. */
  readonly forge?: FindForge;
  /** For issues. */
  readonly forgeOf?: ForgeOf;
  readonly workflows: WorkflowPorts;
  /** What the user's MCP servers need; absent: there are none. */
  readonly mcp?: Omit<McpPorts, 'serversOf'>;
  /** Ends every process with this environment variable. @returns how many */
  readonly endOrphans: (variable: string, value: string) => Promise<number>;
  readonly now: () => number;
  /** Called when nothing can be saved any more: another server has taken over, or the database is gone. */
  readonly onLeaseLost: (error: StoreError) => void;
  /** Absent by default: with an inspector, XState reports every event of every actor. */
  readonly inspect?: (event: InspectionEvent) => void;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}
