import { CallError } from './client.ts';
import { fetchTransport } from './fetch-transport.ts';
import { createHttpCall } from './http-calls.ts';
import { followFrames } from './http-frames.ts';
import { type TaskClient, taskClientOf } from './task-client.ts';

export { type Call, CallError, type MethodName, type Params, type Result } from './client.ts';
export type { StreamOptions, TaskClient, WaitOptions } from './task-client.ts';
export type { Frame, FrameData, FrameType, Methods, Task } from './wire-types.ts';

/** The address of a server; `agent server status` and `agent token` print both. */
export interface ServerAddress {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly token: string;
}

/** For a server whose address is known. */
export const createClient = (address: ServerAddress): TaskClient =>
  taskClientOf({
    call: createHttpCall(address, fetchTransport),
    frames: (taskId, after, signal) =>
      followFrames({ address, transport: fetchTransport, taskId, after, signal }),
  });

/** @deprecated Import it from `agent-task-server/client/node`. @throws CallError */
export const openProject = async (..._given: readonly unknown[]): Promise<never> => {
  throw new CallError(
    'server_needed',
    "this client only calls a server; import openProject from 'agent-task-server/client/node'",
  );
};
