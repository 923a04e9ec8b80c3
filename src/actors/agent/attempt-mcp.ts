import { z } from 'zod';
import type { AttemptInput } from '../../machines/task.ts';
import type { EventType } from '../journal/event-types.ts';
import type { McpServer, McpTool, ToolChange } from '../mcp/port.ts';
import type { Relay } from '../mcp/relay.ts';
import type { McpServers } from '../mcp/servers.ts';
import type { McpSurroundings } from '../mcp/transports.ts';
import { keepHeadAndTail, maxResultBytes } from '../process/head-tail-buffer.ts';
import type { Network, Sandbox } from '../sandbox/port.ts';
import type { Tool } from '../tools/port.ts';
import type { OpenWorkspace } from '../workspace/port.ts';

/** The tools of the user's MCP servers in one attempt. */
export interface AttemptMcp {
  tools(): readonly Tool[];
  /** Takes over what the servers changed. Never rejects. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Sentences that the model reads before its next turn. */
  readonly notes: readonly string[];
  changeOf(tool: string): ToolChange | null;
  /** The changed tools that a person has allowed for this turn, by name: their fingerprints. */
  allow(changes: Readonly<Record<string, string>>): void;
  close(): Promise<void>;
}

const noMcp: AttemptMcp = {
  tools: () => [],
  refresh: async () => {},
  notes: [],
  changeOf: () => null,
  allow: () => {},
  close: async () => {},
};

export interface McpPorts {
  readonly serversOf: (role: AttemptInput['role']) => readonly McpServer[];
  /** The configuration of a server may name these. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Null: what is seen of the servers is forgotten with this process. */
  readonly pinsFile: string | null;
  readonly version: string;
}

export interface AttemptMcpPorts extends McpPorts {
  readonly emit: (key: AttemptInput, type: EventType, data: unknown) => void;
  readonly sandbox: Sandbox;
  readonly networkOf: (
    attempt: AttemptInput,
    user: { readonly kind: 'server' } & Parameters<McpSurroundings['networkOf']>[0],
  ) => Network;
  readonly usersFiles: () => McpSurroundings['usersFiles'];
  readonly environmentOf: (attempt: AttemptInput) => Readonly<Record<string, string>>;
}

const anyArguments = z.record(z.string(), z.unknown());
/** The line on the saved output fits into the result beside it. */
const shownResultBytes = maxResultBytes - 512;

const toolFor = (
  { name, description, parameters }: McpTool,
  servers: McpServers,
  allowed: () => Readonly<Record<string, string>>,
): Tool<Record<string, unknown>> => ({
  name,
  description,
  parameters,
  schema: anyArguments,
  run: async (args, { signal, openLog }) => {
    const result = await servers.call(name, args, { allowed: allowed()[name] ?? null, signal });
    const log = openLog(shownResultBytes);
    log.push(result.text);
    const kept = log.close();
    if (kept === null) return result;
    const whole = kept.isWhole ? 'the whole' : 'more of the';
    const note = `\n[${whole} output is in ${kept.path}; commands can read it]`;
    return { ok: result.ok, text: `${keepHeadAndTail(result.text, shownResultBytes)}${note}` };
  },
});

const noteOn = (problem: string): string =>
  `These tools are missing now, so do without them: ${problem.slice(0, 1_000)}`;

/** Loads the code for servers only where the user has some; null where a role has none. */
export const createServersOpener = (ports: AttemptMcpPorts) => {
  let pins: ReturnType<typeof import('../mcp/open-servers.ts').openPins> | null = null;

  return async (
    attempt: AttemptInput,
    workspace: Pick<OpenWorkspace, 'root' | 'readable' | 'git'>,
    signal: AbortSignal,
  ): Promise<McpServers | null> => {
    const wanted = ports.serversOf(attempt.role);
    if (wanted.length === 0) return null;
    const { openPins, openServers, placeFor } = await import('../mcp/open-servers.ts');
    pins ??= openPins(ports.pinsFile);
    const around = {
      root: workspace.root,
      readable: workspace.readable,
      git: workspace.git,
      sandbox: ports.sandbox,
      networkOf: (server: Parameters<McpSurroundings['networkOf']>[0]) =>
        ports.networkOf(attempt, { kind: 'server', ...server }),
      usersFiles: ports.usersFiles(),
      env: ports.environmentOf(attempt),
      variables: ports.variables,
    };
    return openServers({
      servers: wanted,
      version: ports.version,
      pins,
      placeFor: (server) => placeFor(server, around),
      signal,
      warn: (message) => ports.emit(attempt, 'log', { level: 'warn', message }),
    });
  };
};
type OpenAttemptServers = ReturnType<typeof createServersOpener>;

/** Servers for an assistant, which calls them itself. */
export const createHandMcp =
  (open: OpenAttemptServers, { serversOf, version, emit }: AttemptMcpPorts) =>
  async (
    attempt: AttemptInput,
    workspace: Pick<OpenWorkspace, 'root' | 'readable' | 'git'>,
    signal: AbortSignal,
  ): Promise<Relay | null> => {
    const servers = await open(attempt, workspace, signal);
    if (servers === null) return null;
    const { openRelay } = await import('../mcp/open-servers.ts');
    return openRelay({
      servers,
      version,
      offered: serversOf(attempt.role),
      warn: (message) => emit(attempt, 'log', { level: 'warn', message }),
    });
  };

/** Servers for the built-in agent. */
export const createAttemptMcp =
  (open: OpenAttemptServers) =>
  async (
    attempt: AttemptInput,
    workspace: OpenWorkspace,
    signal: AbortSignal,
  ): Promise<AttemptMcp> => {
    const servers = await open(attempt, workspace, signal);
    if (servers === null) return noMcp;
    let allowed: Readonly<Record<string, string>> = {};
    return {
      tools: () => servers.tools().map((tool) => toolFor(tool, servers, () => allowed) as Tool),
      refresh: servers.refresh,
      notes: servers.missing.map(noteOn),
      changeOf: servers.changeOf,
      allow: (changes) => {
        allowed = changes;
      },
      close: servers.close,
    };
  };
export type OpenAttemptMcp = ReturnType<typeof createAttemptMcp>;
