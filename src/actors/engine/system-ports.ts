import type { InspectionEvent } from 'xstate';
import type { Assistants } from '../assistants/assistants.ts';
import type { Results } from '../files/results.ts';
import type { Model } from '../model/port.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import type { Workspace } from '../workspace/port.ts';

/** What the system works on. */
export interface SystemPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly workspace: Workspace;
  readonly sandbox: Sandbox;
  /** The model for a requested name, or null when it cannot be called for want of a credential. */
  readonly selectModel: (requested: string) => Model | null;
  /** Programs that can do the work instead of our own loop. */
  readonly assistants: Assistants;
  readonly environment: Readonly<Record<string, string>>;
  readonly results: Results;
  /** Ends every process that began with this variable in its environment, and says how many there were. */
  readonly endOrphans: (variable: string, value: string) => Promise<number>;
  readonly now: () => number;
  /** Sees every actor, or is absent: looking costs time (facts/runtime 3). */
  readonly inspect?: (event: InspectionEvent) => void;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}
