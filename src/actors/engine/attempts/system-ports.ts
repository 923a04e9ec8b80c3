import type { InspectionEvent } from 'xstate';
import type { FoundWorkflow } from '../../../machines/workflow/workflow-narrowing.ts';
import type { McpPorts } from '../../agent/attempt-mcp.ts';
import type { Assistants } from '../../assistants/assistants.ts';
import type { Model } from '../../model/port.ts';
import type { Results } from '../../results/results.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { Store, StoreError } from '../../store/port.ts';
import type { ServerCallOptions, ServerCalls } from '../../store/postgres/server-calls.ts';
import type { Tracker } from '../../tracker/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { ForgeOf } from '../importing/import-issues.ts';
import type { FindForge } from '../publishing/forge-place.ts';
import type { SharedLease } from '../servers/lease.ts';
import type { ServerNotices } from '../slots/share-slots.ts';
import type { Settings } from './settings.ts';

export interface WorkflowPorts {
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
  readonly shared?: SharedPorts | undefined;
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
