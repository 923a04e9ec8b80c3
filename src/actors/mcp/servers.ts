import { messageOf } from '../../machines/message-of.ts';
import { plural } from '../../machines/plural.ts';
import { connectMcp, type McpConnection, type OpenPlace } from './connection.ts';
import type { Pins } from './pins.ts';
import {
  type McpCallResult,
  McpError,
  type McpServer,
  type McpTool,
  mcpPrefix,
  type ToolChange,
} from './port.ts';
import { changeOfTool } from './tool-changes.ts';

/** A server that ends again and again is not started once more. */
const maxStarts = 4;
const shownLeft = 3;
/** Time limit of reading a list again (ms), and how often in a row that may fail. */
const reloadMs = 5_000;
const failedReloadsAtMost = 3;

export interface ServersOptions {
  readonly servers: readonly McpServer[];
  /** The version of this program. */
  readonly version: string;
  readonly pins: Pins;
  /** @throws McpError */
  readonly placeFor: (server: McpServer) => Promise<OpenPlace>;
  readonly signal: AbortSignal;
  /** For the person who reads the log of the task. */
  readonly warn: (message: string) => void;
}

/** The servers of one attempt. */
export interface McpServers {
  tools(): readonly McpTool[];
  /** Reads the lists again that changed. Never rejects, and takes at most 5 s. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Servers without tools, and why; for the model. */
  readonly missing: readonly string[];
  /** Null for a tool that may be called without asking. */
  changeOf(name: string): ToolChange | null;
  /** `allowed`: the fingerprint that a person has allowed. Never rejects. */
  call(
    name: string,
    args: object,
    given: { readonly allowed: string | null; readonly signal: AbortSignal },
  ): Promise<McpCallResult>;
  /** Ends every process of every server. */
  close(): Promise<void>;
}

/** One server, which is started again when it is needed and has ended. */
const createServer = (server: McpServer, options: ServersOptions) => {
  const { pins, warn, version } = options;
  const { name, startMs, callMs } = server;
  let connection: McpConnection | null = null;
  let starts = 0;
  let failedReloads = 0;
  const fault = (why: string): McpError => new McpError(`the MCP server ${name}: ${why}`);
  const warnOfLeft = (left: McpConnection['left']): void => {
    if (left.length === 0) return;
    const shown = left.slice(0, shownLeft).join('; ');
    warn(`the MCP server ${name}: ${plural(left.length, 'tool')} left out: ${shown}`);
  };

  const start = async (signal: AbortSignal): Promise<McpConnection> => {
    if (connection !== null && connection.over() === null) return connection;
    if (starts >= maxStarts)
      throw fault(
        `it was started ${starts} times and is gone (${connection?.over() ?? 'it does not start'})`,
      );
    starts += 1;
    await connection?.close();
    try {
      const place = await options.placeFor(server);
      connection = await connectMcp({ server: name, version, startMs, signal, place });
    } catch (error) {
      throw fault(messageOf(error));
    }
    warnOfLeft(connection.left);
    if (pins.of(name) === null) await pins.keep(name, connection.tools);
    return connection;
  };
  const refresh = async (signal: AbortSignal): Promise<void> => {
    if (connection === null || connection.over() !== null || !connection.isStale()) return;
    if (failedReloads >= failedReloadsAtMost) return;
    try {
      await connection.reload(Math.min(startMs, reloadMs), signal);
      failedReloads = 0;
      warnOfLeft(connection.left);
    } catch (error) {
      failedReloads += 1;
      if (!signal.aborted)
        warn(`the MCP server ${name}: its new list could not be read: ${messageOf(error)}`);
    }
  };

  const pinnedOf = (tool: string): McpTool | undefined =>
    pins.of(name)?.find((each) => each.name === tool);
  const currentOf = (tool: string): McpTool | undefined =>
    connection?.tools.find((each) => each.name === tool);
  const changeOf = (tool: string): ToolChange | null => {
    const current = currentOf(tool);
    return current === undefined ? null : changeOfTool(pinnedOf(tool), current);
  };

  /** Those of the user's list where it has them: a person must see what is new in them. */
  const tools = (): readonly McpTool[] =>
    (connection?.tools ?? pins.of(name) ?? [])
      .map((current) => pinnedOf(current.name) ?? current)
      .filter(({ tool }) => server.tools?.includes(tool) ?? true);

  return {
    name,
    start,
    refresh,
    tools,
    changeOf,
    call: async (
      tool: string,
      args: object,
      { allowed, signal }: { readonly allowed: string | null; readonly signal: AbortSignal },
    ): Promise<McpCallResult> => {
      const { call } = await start(signal);
      const current = currentOf(tool);
      if (current === undefined || !tools().some((each) => each.name === tool))
        throw fault(`it no longer has ${tool}`);
      const change = changeOf(tool);
      if (change !== null && change.fingerprint !== allowed)
        throw fault(`${tool} has changed; call it again, and a person is asked first`);
      if (change !== null) {
        const others = (pins.of(name) ?? []).filter((each) => each.name !== tool);
        await pins.keep(name, [...others, current]);
      }
      try {
        return await call(current.tool, args, callMs, signal);
      } catch (error) {
        throw fault(messageOf(error));
      }
    },
    close: async () => connection?.close(),
  };
};

/**
 * Starts all servers at once. One that does not start leaves its tools as they were when it last
 * did: a call of them tries again.
 */
export const openServers = async (options: ServersOptions): Promise<McpServers> => {
  const all = options.servers.map((server) => createServer(server, options));
  const missing: string[] = [];
  await Promise.all(
    all.map(async (server) => {
      try {
        await server.start(options.signal);
      } catch (error) {
        options.warn(messageOf(error));
        if (server.tools().length === 0) missing.push(messageOf(error));
      }
    }),
  );
  const close = async (): Promise<void> =>
    void (await Promise.all(all.map((server) => server.close())));
  const ownerOf = (tool: string) =>
    all.find(({ name }) => tool.startsWith(`${mcpPrefix}${name}__`));
  return {
    tools: () => all.flatMap((server) => server.tools()),
    refresh: async (signal) =>
      void (await Promise.all(all.map((server) => server.refresh(signal)))),
    missing,
    changeOf: (name) => ownerOf(name)?.changeOf(name) ?? null,
    call: async (name, args, given) => {
      try {
        const owner = ownerOf(name);
        if (owner === undefined) throw new McpError(`there is no tool ${name}`);
        return await owner.call(name, args, given);
      } catch (error) {
        return { ok: false, text: messageOf(error) };
      }
    },
    close,
  };
};
