import type { AgentLimits, Backend } from '../../machines/agent-context.ts';
import type { AttemptInput, AttemptOutcome, Failure, Finding, Role, RunOptions, TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { Results } from '../files/results.ts';
import type { EventType } from '../journal/event-types.ts';
import type { SavedActor, Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import type { MergeMode, Workspace } from '../workspace/port.ts';
import type { AgentRuns } from './agent-runs.ts';
import type { InvokedActors } from './invoked.ts';
import type { PreparedChanges } from './prepared-changes.ts';
import type { Slots } from './slots.ts';
import type { VerifyCommands } from './verify.ts';

export interface TaskActorPorts {
  readonly tracker: Tracker;
  readonly prepared: PreparedChanges;
  readonly store: Store;
  /** The saved agent of an attempt, which the next actor continues. */
  readonly earlierAgent: (taskId: TaskId, attempt: number) => Promise<SavedActor | null>;
  readonly slots: Slots;
  readonly agentRuns: AgentRuns;
  readonly invoked: InvokedActors;
  readonly results: Results;
  readonly verify: VerifyCommands;
  readonly workspace: Workspace;
  readonly mergeMode: () => MergeMode;
  readonly emit: (attempt: Pick<AttemptInput, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  readonly limits: (options: RunOptions, role: Role) => AgentLimits;
  readonly lookUp: (taskId: TaskId, options: RunOptions, role: Role) => Promise<Finding>;
  readonly backendOf: (options: RunOptions, role: Role) => Backend;
  readonly modelOf: (options: RunOptions, role: Role) => { readonly name: string; readonly disclaimer: string | null };
  /** Reads the task in the tracker, before a transition that depends on it. */
  readonly refresh: (taskId: TaskId) => Promise<TrackedTask | null>;
  /** The task as the tracker had it last, for outages. */
  readonly knownTask: (taskId: TaskId) => TrackedTask | null;
  readonly priorityOf: (taskId: TaskId) => number;
  readonly contextOf: (taskId: TaskId) => {
    readonly role: Role | null;
    readonly attempt: number;
    readonly options: RunOptions;
    readonly startedAt: number | null;
    readonly outcome: AttemptOutcome | null;
    readonly failure: Failure | null;
    readonly reason: string | null;
  } | null;
  /** Comment in the tracker at the end of an attempt. */
  readonly notes: () => boolean;
  /** Ends processes of an attempt that an earlier server left. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
  /** Commits gathered progress, so that later entries follow it. */
  readonly flush: () => unknown;
  readonly now: () => number;
}
