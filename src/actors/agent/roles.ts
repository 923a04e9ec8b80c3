import type { Role } from '../../machines/task.ts';

/** The instructions and limits of a role (Spec 1.7). */
export interface RoleProfile {
  readonly role: Role;
  /** Shown in the discovery document. */
  readonly description: string;
  /** Names of tools; every role needs `finish` to end. */
  readonly tools: readonly string[];
  /** The wall-clock limit of one attempt. */
  readonly timeoutMs: number;
  readonly prompt: string;
  /** Conditions that must hold before the agent calls `finish`. */
  readonly criteria: readonly string[];
  /** The project's own file for the role, given as material; null when there is none. */
  readonly projectNotes: string | null;
}
