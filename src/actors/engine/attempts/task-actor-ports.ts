import type { AgentLimits, Backend } from '../../../machines/agent/agent-context.ts';
import type { AttemptInput, Finding, Role, RunOptions, TaskId } from '../../../machines/task.ts';
import type { EventType } from '../../journal/event-types.ts';
import type { Results } from '../../results/results.ts';
import type { Store } from '../../store/port.ts';
import type { Tracker } from '../../tracker/port.ts';
import type { MergeMode, Workspace } from '../../workspace/port.ts';
import type { MergeQueue } from '../merging/merge-queue.ts';
import type { Slots } from '../slots/slots.ts';
import type { DependencyWaits } from '../tasks/dependency-waits.ts';
import type { TaskHost } from '../tasks/task-host.ts';
import type { AgentRuns } from './agent-runs.ts';
import type { Budgets } from './budgets.ts';
import type { InvokedActors } from './invoked.ts';
import type { MergeSettings } from './settings.ts';
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
