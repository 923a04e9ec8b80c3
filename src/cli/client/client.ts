/** An error answer, with the name and facts from the wire. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    facts: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super(message, { cause });
    this.code = code;
    this.facts = facts;
  }
}

/** `seq` is null for frames that are not in the journal. */
export interface Frame {
  readonly type: string;
  readonly task_id: string;
  readonly attempt: number;
  readonly seq: number | null;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Calls a server, or reads the project's files for methods that need no agent. */
export interface Client {
  /** True when a server answers. Otherwise tasks are shown as last committed. */
  readonly live: boolean;
  /** @throws CallError */
  call(method: string, params: Readonly<Record<string, unknown>>): Promise<unknown>;
  /**
   * The frames of a task until its attempt ends, or (null) of every task; reconnects as needed.
   * @throws CallError
   */
  frames(taskId: string | null, after: number | null, signal: AbortSignal): AsyncIterable<Frame>;
}
