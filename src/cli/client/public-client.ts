import { setTimeout as delay } from 'node:timers/promises';
import { asksPerson, isAtRest } from '../../http/streams/at-rest.ts';
import type { Call, Client, Frame, Params, Result } from './client.ts';
import { createHttpClient } from './http-client.ts';
import type { Task } from './wire-types.ts';

export {
  type Call,
  CallError,
  type Frame,
  type MethodName,
  type Params,
  type Result,
} from './client.ts';
export type { Methods, Task } from './wire-types.ts';

/** The address of a server; `agent server status` and `agent token` print both. */
export interface ServerAddress {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly token: string;
}

export interface StreamOptions {
  /** Only frames after this `seq`; default: from now on, after a snapshot of the task. */
  readonly after?: number;
  /** Ends the stream without an error. */
  readonly signal?: AbortSignal;
}

export interface WaitOptions {
  /** Gives up with its reason; `AbortSignal.timeout(60_000)` is a limit of a minute. */
  readonly signal?: AbortSignal;
}

/** Each method throws `CallError`, whose `code` is the name of the error. */
export interface TaskClient {
  /** Any method of the server, with its params. */
  readonly call: Call;
  /** Runs a role on a task; answers when the run is accepted. */
  execute(params: Params<'execute'>): Promise<Result<'execute'>>;
  /**
   * What happens to a task until its attempt ends, or (null) to every task, without end. After a cut
   * it goes on where it was.
   */
  stream(taskId: string | null, options?: StreamOptions): AsyncIterable<Frame>;
  /** The task, once it is over or asks a person (`awaiting`); at once when nobody runs it. */
  wait(taskId: string, options?: WaitOptions): Promise<Task>;
}

export interface OpenOptions {
  /** Starts a server when none runs; default: true. */
  readonly start?: boolean;
  /** The configuration of a server that is started. */
  readonly config?: string;
  /** Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const waitPauseMs = 500;

const createWait =
  ({ call, frames }: Client): TaskClient['wait'] =>
  async (taskId, { signal = new AbortController().signal } = {}) => {
    for (;;) {
      signal.throwIfAborted();
      const task = await call('status', { task_id: taskId });
      if (isAtRest(task)) return task;
      const ended = new AbortController();
      const until = AbortSignal.any([signal, ended.signal]);
      for await (const frame of frames(taskId, null, until)) if (asksPerson(frame)) break;
      ended.abort();
      // Another attempt may follow.
      await delay(waitPauseMs, undefined, { signal }).catch(() => {});
    }
  };

const clientOf = (client: Client): TaskClient => ({
  call: client.call,
  execute: (params) => client.call('execute', params),
  stream: (taskId, { after = null, signal = new AbortController().signal } = {}) =>
    client.frames(taskId, after, signal),
  wait: createWait(client),
});

/** For a server whose address is known. */
export const createClient = (address: ServerAddress): TaskClient =>
  clientOf(createHttpClient(address));

/**
 * Finds the server of a project, as `agent` does, and starts one when none runs.
 *
 * @param folder a folder of the project
 */
export const openProject = async (
  folder: string,
  { start = true, config, env = process.env }: OpenOptions = {},
): Promise<TaskClient> => {
  const [{ findProject }, { connect }] = await Promise.all([
    import('../config/places/project.ts'),
    import('./connect.ts'),
  ]);
  const project = findProject(folder, process.cwd(), env);
  const io = { err: () => {}, live: () => {} };
  return clientOf(await connect({ project, config, start, env, io }).server());
};
