import { z } from 'zod';
import { roles } from '../../../machines/task.ts';
import { absolutePath, httpUrl, isSafeUrl, networkAccess, positive } from './config-values.ts';

const value = z.string().max(4_000);

/** In the form that assistants use in their own files, so that an entry can be copied. */
const mcpServer = z
  .strictObject({
    project: z
      .string()
      .regex(/^[0-9a-f]{12}$/, 'expected the 12 characters that agent doctor shows')
      .optional()
      .describe(
        "takes the server of this name from the project's .mcp.json, as long as it is as agent doctor showed it",
      ),
    type: z
      .enum(['stdio', 'http'])
      .optional()
      .describe('unset: stdio with a command, http with a url'),
    command: z.string().min(1).max(4_000).optional().describe('program that is the server'),
    args: z.array(z.string().max(4_000)).max(100).default([]).describe('its arguments'),
    env: z
      .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), value)
      .default({})
      .describe(
        `environment variables of the program; \${NAME} in a value is the variable NAME of our server, and it gets no other one`,
      ),
    url: httpUrl
      .refine(isSafeUrl, 'must be https, or an address of this machine')
      .optional()
      .describe('address of a server that speaks Streamable HTTP'),
    headers: z
      .record(z.string().regex(/^[\w-]+$/), value)
      .default({})
      .describe(`headers of each request; \${NAME} in a value is the variable NAME of our server`),
    roles: z
      .array(z.enum(roles))
      .min(1)
      .optional()
      .describe('the roles that may use it; unset: all'),
    tools: z
      .array(z.string().min(1).max(128))
      .min(1)
      .max(200)
      .optional()
      .describe('the tools that may be used, by the names of the server; unset: all'),
    sandbox: z
      .enum(['on', 'off'])
      .default('on')
      .describe('on: the program runs in the sandbox, as commands do; off: it runs as you'),
    network: networkAccess
      .default(false)
      .describe('what the program may reach, as sandbox.network, which does not count for it'),
    workspace: z
      .enum(['read', 'write'])
      .default('read')
      .describe(
        "what the program may do with the files of the agent; write works only in an attempt's own worktree",
      ),
    read_paths: z
      .array(absolutePath)
      .max(50)
      .default([])
      .describe('more folders that the program may read; absolute paths'),
    start_timeout_seconds: positive
      .max(300)
      .default(20)
      .describe('time limit of its start and its list of tools'),
    timeout_seconds: positive.max(3_600).default(120).describe('time limit of a call'),
  })
  .refine(
    ({ command, url, project }) =>
      [command, url, project].filter((given) => given !== undefined).length === 1,
    { message: 'needs one of command and url, or project' },
  )
  .refine(
    ({ type, command, project }) =>
      type === undefined ||
      (project === undefined && (type === 'stdio') === (command !== undefined)),
    { path: ['type'], message: 'must be stdio with a command, http with a url' },
  );
export type McpServerConfig = z.infer<typeof mcpServer>;

export const mcpServers = z
  .record(
    z
      .string()
      .max(32)
      .regex(/^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$/, 'expected letters, digits and single - or _'),
    mcpServer,
  )
  .default({})
  .describe(
    'servers of the Model Context Protocol whose tools agents may call, by name: command, args and env, or url and headers; and roles, tools, sandbox, network, workspace, read_paths and time limits',
  );
