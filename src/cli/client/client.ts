/** An error answer, with its name and facts from the wire. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, facts: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(message, { cause });
    this.code = code;
    this.facts = facts;
  }
}

/** A frame of a task's stream; `seq` is null for the frames that the journal does not hold. */
export interface Frame {
  readonly type: string;
  readonly task_id: string;
  readonly attempt: number;
  readonly seq: number | null;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Calls a server, or the project's files for methods that need no agent. */
export interface Client {
  /** True if a server answers. Without one, tasks are shown as they were last committed. */
  readonly live: boolean;
  /** @throws CallError */
  call(method: string, params: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** The frames of a task to the end of its attempt, over as many connections as it takes. @throws CallError */
  frames(taskId: string, after: number | null, signal: AbortSignal): AsyncIterable<Frame>;
}
