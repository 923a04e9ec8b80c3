import { asksPerson, isAtRest } from '../../http/streams/at-rest.ts';
import type { Call, Client, Params, Result } from './client.ts';
import { pause } from './http-frames.ts';
import type { Frame, Task } from './wire-types.ts';

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

const waitPauseMs = 500;

const createWait =
  ({ call, frames }: Pick<Client, 'call' | 'frames'>): TaskClient['wait'] =>
  async (taskId, { signal = new AbortController().signal } = {}) => {
    for (;;) {
      signal.throwIfAborted();
      const task = await call('status', { task_id: taskId });
      if (isAtRest(task)) return task;
      for await (const frame of frames(taskId, null, signal)) if (asksPerson(frame)) break;
      // Another attempt may follow.
      await pause(waitPauseMs, signal);
    }
  };

export const taskClientOf = (client: Pick<Client, 'call' | 'frames'>): TaskClient => ({
  call: client.call,
  execute: (params) => client.call('execute', params),
  // The server sends what the reference of its events says.
  stream: (taskId, { after = null, signal = new AbortController().signal } = {}) =>
    client.frames(taskId, after, signal) as AsyncIterable<Frame>,
  wait: createWait(client),
});
