import type { NetworkAccess } from '../network/access.ts';

export interface StdioLaunch {
  readonly kind: 'stdio';
  readonly argv: readonly [string, ...string[]];
  /** Values may name variables: `${NAME}`. */
  readonly env: Readonly<Record<string, string>>;
  /** False: it runs as the user. */
  readonly sandboxed: boolean;
  readonly network: NetworkAccess;
  /** Whether it may change the agent's own worktree; it never may change a shared folder. */
  readonly mayWrite: boolean;
  /** Absolute. */
  readonly readPaths: readonly string[];
}

export interface HttpPlace {
  readonly kind: 'http';
  readonly url: string;
  /** Values may name variables: `${NAME}`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A server of the project that the user has not allowed as it is now. */
export interface RefusedPlace {
  readonly kind: 'refused';
  readonly why: string;
}

/** A server of the Model Context Protocol that the user configured. */
export interface McpServer {
  /** Letters, digits and single dashes or underscores. */
  readonly name: string;
  readonly place: StdioLaunch | HttpPlace | RefusedPlace;
  /** The server's own names; null: all its tools. */
  readonly tools: readonly string[] | null;
  /** Time limit of start and list (ms). */
  readonly startMs: number;
  /** Time limit of a call (ms). */
  readonly callMs: number;
}

/** A server for an assistant: an address of our own process, which passes its calls on. */
export interface HandedServer extends Pick<McpServer, 'name' | 'startMs' | 'callMs'> {
  readonly url: string;
  /** Valid for this attempt alone. */
  readonly token: string;
}

/** A tool as a model sees it. */
export interface McpTool {
  /** `mcp__<server>__<tool>`; at most 64 letters, digits, `_` and `-`. */
  readonly name: string;
  readonly server: string;
  /** The server's own name of it. */
  readonly tool: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Equal for the same name, description and parameters. */
  readonly fingerprint: string;
}

/** A tool that a person must allow: it is not what the user's list holds. */
export interface ToolChange {
  readonly fingerprint: string;
  /** The reason, for the person who decides. */
  readonly why: string;
}

export interface McpCallResult {
  readonly ok: boolean;
  readonly text: string;
}

export interface McpErrorFacts {
  /** The JSON-RPC code of the server's answer. */
  readonly code?: number | undefined;
  readonly data?: unknown;
  /** The HTTP status of the server's answer. */
  readonly status?: number | undefined;
}

/** What a server did wrong, or why it cannot be reached. The message is for people and models. */
export class McpError extends Error {
  override readonly name = 'McpError';
  readonly facts: McpErrorFacts;

  constructor(message: string, facts: McpErrorFacts = {}) {
    super(message);
    this.facts = facts;
  }
}

export const mcpPrefix = 'mcp__';
