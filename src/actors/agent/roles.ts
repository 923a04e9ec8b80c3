import type { Role } from '../../machines/task.ts';

export interface RoleProfile {
  readonly role: Role;
  readonly description: string;
  /** Names of tools; every role needs `finish` to end. */
  readonly tools: readonly string[];
  readonly timeoutMs: number;
  readonly prompt: string;
  readonly criteria: readonly string[];
  /** The project's own file for the role, shown to the agent as material; null without one. */
  readonly projectNotes: string | null;
}
