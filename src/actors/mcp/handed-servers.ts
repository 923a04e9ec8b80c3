import { homedir } from 'node:os';
import { messageOf } from '../../machines/message-of.ts';
import { programPaths } from '../sandbox/assistant-mounts.ts';
import { type HandedServer, McpError, type McpServer } from './port.ts';
import { withVariables } from './variables.ts';

type HandedVariables = Readonly<Record<string, string | undefined>>;

const placeFor = ({ place }: McpServer, variables: HandedVariables): HandedServer['place'] => {
  if (place.kind === 'refused') throw new McpError(place.why);
  return place.kind === 'http'
    ? { ...place, headers: withVariables(place.headers, variables) }
    : { kind: 'stdio', argv: place.argv, env: withVariables(place.env, variables) };
};

/** Tells of the servers that lack a variable, and leaves them out. */
export const handedServers = (
  servers: readonly McpServer[],
  variables: HandedVariables,
  warn: (message: string) => void,
): readonly HandedServer[] =>
  servers.flatMap((server) => {
    const { name, tools, startMs, callMs, place } = server;
    const readable =
      place.kind === 'stdio'
        ? [...place.readPaths, ...programPaths(place.argv[0], [homedir()])]
        : [];
    try {
      const own = placeFor(server, variables);
      return [{ name, tools, startMs, callMs, readable, place: own }];
    } catch (error) {
      warn(`the MCP server ${name} is not handed to the assistant: ${messageOf(error)}`);
      return [];
    }
  });
