import type { Methods, Task } from './wire-types.ts';

/** An error answer, with the name and facts from the wire. */
export class CallError extends Error {
  /** The client for programs is published in several bundles, each with a class of its own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === 'CallError';
  }

  override readonly name = 'CallError';
  /** The name of the error, such as `task_not_found`. */
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

export type MethodName = keyof Methods;
export type Params<Name extends MethodName> = Methods[Name]['params'];
export type Result<Name extends MethodName> = Methods[Name]['result'];

export type TaskMethod = {
  [Name in MethodName]: Result<Name> extends Task ? Name : never;
}[MethodName];

/** @throws CallError */
export type Call = <Name extends MethodName>(
  method: Name,
  params: Params<Name>,
) => Promise<Result<Name>>;

/** Calls a server, or reads the project's files for methods that need no agent. */
export interface Client {
  /** True when a server answers. Otherwise tasks are shown as last committed. */
  readonly live: boolean;
  readonly call: Call;
  /** Keeps an image for `create`. @returns its digest. @throws CallError */
  readonly upload: (image: Buffer) => Promise<string>;
  /**
   * The frames of a task until its attempt ends, or (null) of every task; reconnects as needed.
   * @throws CallError
   */
  frames(taskId: string | null, after: number | null, signal: AbortSignal): AsyncIterable<Frame>;
}
