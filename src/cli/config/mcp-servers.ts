import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readRegular } from '../../actors/files/regular-file.ts';
import type { McpServer } from '../../actors/mcp/port.ts';
import { variablesIn } from '../../actors/mcp/variables.ts';
import type { Role } from '../../machines/task.ts';
import { oneLine } from '../output/safe-text.ts';
import type { Config } from './schema/config-schema.ts';
import { isSafeUrl } from './schema/config-values.ts';
import type { McpServerConfig } from './schema/mcp-schema.ts';

const file = '.mcp.json';
const bytesAtMost = 64 * 1024;
const shownValueLength = 300;

const boundedText = z.string().max(4_000);
const variables = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), boundedText).default({});
const server = z.union([
  z.object({
    command: boundedText.min(1),
    args: z.array(boundedText).max(100).default([]),
    env: variables,
  }),
  z.object({
    url: z.url({ protocol: /^https?$/, abort: true }).refine(isSafeUrl),
    headers: z.record(z.string().regex(/^[\w-]+$/), boundedText).default({}),
  }),
]);
const projectFileSchema = z.object({ mcpServers: z.record(z.string(), z.unknown()) });

/** A server that the project's own file names. It is nothing until the user allows it. */
interface ProjectServer {
  readonly name: string;
  /** Another one when anything of its entry changes. */
  readonly fingerprint: string;
  readonly entry: z.infer<typeof server>;
}

const serverNamed = (name: string, given: unknown): readonly ProjectServer[] => {
  const { data: entry } = server.safeParse(given);
  if (entry === undefined) return [];
  const hash = createHash('sha256')
    .update(JSON.stringify([name, entry]))
    .digest('hex');
  return [{ name, entry, fingerprint: hash.slice(0, 12) }];
};

/** Untrusted: bounded, no links, never throws. Entries that we cannot use are left out. */
export const projectServers = (root: string): readonly ProjectServer[] => {
  try {
    const { mcpServers } = projectFileSchema.parse(
      JSON.parse(readRegular(join(root, file), bytesAtMost)),
    );
    return Object.entries(mcpServers).flatMap(([name, given]) => serverNamed(name, given));
  } catch {
    return [];
  }
};

/** One line, safe to show. */
export const entryText = ({ entry }: ProjectServer): string =>
  oneLine(JSON.stringify(entry), shownValueLength);

type McpConfig = Pick<Config['mcp'], 'servers'>;

/** Which variables a server gets is the user's to say. */
const withoutVariables = (given: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).filter(([, text]) => variablesIn(text).length === 0));

/** The entry with what it takes from the project's file; null when it is not as it was allowed. */
const serverEntry = (
  name: string,
  given: McpServerConfig,
  offered: readonly ProjectServer[],
): McpServerConfig | null => {
  if (given.project === undefined) return given;
  const found = offered.find((one) => one.name === name && one.fingerprint === given.project);
  if (found === undefined) return null;
  const { entry } = found;
  return 'url' in entry
    ? {
        ...given,
        url: entry.url,
        headers: { ...withoutVariables(entry.headers), ...given.headers },
      }
    : { ...given, ...entry, env: { ...withoutVariables(entry.env), ...given.env } };
};

const refusedPlace: McpServer['place'] = {
  kind: 'refused',
  why: "the project's .mcp.json does not name it as you allowed it; agent doctor shows how it is now",
};

const entryPlace = (given: McpServerConfig | null): McpServer['place'] => {
  if (given === null) return refusedPlace;
  const { command, url, headers } = given;
  if (command === undefined) return { kind: 'http', url: url ?? '', headers };
  return {
    kind: 'stdio',
    argv: [command, ...given.args],
    env: given.env,
    sandboxed: given.sandbox === 'on',
    network: given.network,
    mayWrite: given.workspace === 'write',
    readPaths: given.read_paths,
  };
};

export const mcpServersFrom = ({ servers }: McpConfig, root: string): readonly McpServer[] => {
  const isAsked = Object.values(servers).some(({ project }) => project !== undefined);
  const offered = isAsked ? projectServers(root) : [];
  return Object.entries(servers).map(([name, given]) => ({
    name,
    place: entryPlace(serverEntry(name, given, offered)),
    tools: given.tools ?? null,
    startMs: given.start_timeout_seconds * 1_000,
    callMs: given.timeout_seconds * 1_000,
  }));
};

/** Names of the servers that a role may use. */
export const mcpServersOf = ({ servers }: McpConfig, role: Role): readonly string[] =>
  Object.entries(servers)
    .filter(([, { roles }]) => roles?.includes(role) ?? true)
    .map(([name]) => name);

/** Values of the variables that servers get; they are secrets, whatever their names. */
export const mcpSecrets = ({ servers }: McpConfig, env: NodeJS.ProcessEnv): readonly string[] =>
  Object.values(servers)
    .flatMap(({ env: own, headers }) => [...Object.values(own), ...Object.values(headers)])
    .flatMap(variablesIn)
    .flatMap((name) => env[name] ?? []);
