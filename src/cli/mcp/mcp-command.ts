import { setTimeout as delay } from 'node:timers/promises';
import { createLineSplitter } from '../../actors/process/line-splitter.ts';
import { createMcpSession } from '../../http/mcp/session.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { serverName, version } from '../version.ts';
import { createMcpBackend } from './mcp-backend.ts';

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
