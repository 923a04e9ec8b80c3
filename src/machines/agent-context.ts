import type { Failure, Role, RunOptions, TaskId, Usage } from './task.ts';

export interface AgentLimits {
  readonly maxTurns: number;
  readonly maxTokensTotal: number | null;
  /** Epoch ms: the wall limit of the attempt as an absolute time. */
  readonly deadlineAt: number;
  /** How often the same call with the same result is tolerated. */
  readonly maxRepeats: number;
  /** How often an answer without a tool call is asked to go on. */
  readonly maxNudges: number;
}

export interface AgentInput {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  readonly options: RunOptions;
  readonly limits: AgentLimits;
}

/** What one model call brought. */
export type Thought =
  | {
      readonly kind: 'calls' | 'answer' | 'truncated';
      /** Names of the tools that it wants to call, in order. */
      readonly tools: readonly string[];
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cachedTokens: number;
    }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** What the tool calls of one turn brought. */
export interface Acted {
  readonly calls: number;
  readonly finish: {
    readonly status: 'done' | 'failed';
    readonly summary: string;
    readonly artifacts: readonly string[];
  } | null;
  /** How often the last call has now been made in a row with the same result. */
  readonly repeats: number;
}

export interface AgentContext extends Omit<AgentInput, 'options'> {
  readonly options: RunOptions;
  readonly usage: Usage;
  readonly tools: readonly string[];
  readonly finish: Acted['finish'];
  readonly repeats: number;
  readonly nudges: number;
  readonly failure: Failure | null;
  readonly deadlineAt: number;
}
