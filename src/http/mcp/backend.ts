/**
 * Limits the tool `answer`. questions: it answers questions, and decides on no call that needs
 * approval; all: it also decides; off: the tool is not there.
 */
export const answerPolicies = ['questions', 'all', 'off'] as const;
export type AnswerPolicy = (typeof answerPolicies)[number];

/** The part of the service that the tools use. */
export interface McpBackend {
  /** Absent where the server decides at each call. @throws forbidden */
  readonly requireTool?: (name: string) => Promise<void>;
  /** Calls a JSON-RPC method of the service. */
  call(method: string, params: unknown): Promise<unknown>;
  /** The frames of a task until its attempt ends or the signal aborts. */
  frames(taskId: string, signal: AbortSignal): AsyncIterable<McpFrame>;
  describeError(error: unknown): McpFailure;
  /** Read at each request. @throws an error that `describeError` knows */
  answerPolicy(): AnswerPolicy;
}

export interface McpFrame {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface McpFailure {
  readonly code: string;
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface McpCall {
  /** Aborts when the client cancels the request or goes away. */
  readonly signal: AbortSignal;
  /** Does nothing when the client did not ask for progress. */
  readonly report: (message: string) => void;
}
