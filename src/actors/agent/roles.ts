import type { Role } from '../../machines/task.ts';

/** What an agent of a role is and may do (Spec 1.7). */
export interface RoleProfile {
  readonly role: Role;
  /** For people, in the discovery document. */
  readonly description: string;
  /** Names of tools; every role needs `finish` to end. */
  readonly tools: readonly string[];
  /** The wall-clock limit of one attempt. */
  readonly timeoutMs: number;
  readonly prompt: string;
  /** What must be true before it ends its work. */
  readonly criteria: readonly string[];
  /** What the project's own file says to the role: material, or null. */
  readonly projectNotes: string | null;
}
