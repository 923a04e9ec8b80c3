import type { McpBackend } from '../../http/mcp/backend.ts';
import { CallError, type Client } from '../client/client.ts';
import type { Connection } from '../client/connect.ts';
import { describeError } from '../output/report-error.ts';

/** After these the next request looks for the server again, and starts one if none runs. */
const asksAgain: ReadonlySet<string> = new Set(['server_lost', 'unauthorized']);

interface LooseClient {
  call(method: string, params: object): Promise<unknown>;
}

/** Finds or starts the project's server at the first call. */
export const createMcpBackend = (
  connection: Connection,
  answerPolicy: McpBackend['answerPolicy'],
): McpBackend => {
  let client: Promise<Client> | null = null;
  const using = (): Promise<Client> => {
    client ??= connection.server();
    return client;
  };
  const forgetLost = (error: unknown): void => {
    if (error instanceof CallError && !asksAgain.has(error.code)) return;
    client = null;
    connection.forget();
  };
  return {
    call: async (method, params) => {
      try {
        // The tools name methods of the service only.
        const { call } = (await using()) as LooseClient;
        return await call(method, { ...Object(params) });
      } catch (error) {
        forgetLost(error);
        throw error;
      }
    },
    frames: async function* (taskId, signal) {
      try {
        yield* (await using()).frames(taskId, null, signal);
      } catch (error) {
        forgetLost(error);
        throw error;
      }
    },
    describeError,
    answerPolicy,
  };
};
