import { setTimeout as delay } from 'node:timers/promises';
import { createLineSplitter } from '../../actors/process/line-splitter.ts';
import type { McpBackend } from '../../http/mcp/backend.ts';
import { createMcpSession } from '../../http/mcp/session.ts';
import { CallError, type Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import type { Connection } from '../client/connect.ts';
import { loadConfig } from '../config/config.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { describeError } from '../output/report-error.ts';
import { serverName, version } from '../version.ts';

/** After these the next request looks for the server again, and starts one if none runs. */
const asksAgain: ReadonlySet<string> = new Set(['server_lost', 'unauthorized']);

interface LooseClient {
  call(method: string, params: object): Promise<unknown>;
}

/** Finds or starts the project's server at the first call. */
const createMcpBackend = (
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

/** Characters. */
const longestMessage = 1024 * 1024;
/** For the answers to requests that are open when the input ends. */
const lastAnswersMs = 5_000;

/** Serves one client until its input ends. */
export const serveMcp = async (
  { project, connection, env, io }: CommandContext,
  { config }: { readonly config: string | undefined },
): Promise<number> => {
  const session = createMcpSession({
    backend: createMcpBackend(
      connection,
      () => loadConfig({ config, project }, env).config.mcp.answer,
    ),
    identity: { name: serverName, version },
    send: io.json,
  });
  const open = new Set<Promise<void>>();
  let refuse: (piece: string | null) => void = () => {};
  const lines = createLineSplitter({
    longest: longestMessage,
    onLine: (line) => {
      const taken: Promise<void> = session.take(line).finally(() => open.delete(taken));
      open.add(taken);
    },
    onDropped: () => {
      refuse = session.refuseLong(longestMessage);
    },
    onDroppedText: (piece) => refuse(piece),
  });
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    lines.push(String(chunk));
    await io.room();
  }
  lines.end();
  session.close();
  await Promise.race([Promise.all(open), delay(lastAnswersMs)]);
  return exitCodes.done;
};
