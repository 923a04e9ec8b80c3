import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';
import { mergeModes } from '../actors/workspace/port.ts';
import { roles } from '../machines/task.ts';
import { backend, limits, roleSection, tool } from './roles/role-schema.ts';

const port = z.int().min(0).max(65_535);
const positive = z.int().min(1);
/** What is checked of an address later may take it apart. */
const httpUrl = z.url({
  protocol: /^https?$/,
  abort: true,
  error: 'expected an address like https://host/path or http://host:port/path',
});

/** Whether a key sent there stays on this machine or is encrypted on its way (rule R25). */
export const isSafeUrl = (text: string): boolean => {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
};

const isInside = (path: string): boolean =>
  path !== '' && !isAbsolute(path) && !normalize(path).startsWith('..') && normalize(path).split('/')[0] !== '.git';

const price = z.strictObject({
  input_per_million: z.number().nonnegative(),
  cached_input_per_million: z.number().nonnegative().optional(),
  output_per_million: z.number().nonnegative(),
});

const program = z.string().refine(isAbsolute, 'must be an absolute path');
const extraArguments = z.array(z.string().max(4_000)).max(50).default([]);

/** Every key known, every value in range, every default stated; a value can be checked without the others. */
export const configSections = z.strictObject({
  server: z
    .strictObject({
      port: port.default(8080),
      host: z.enum(['localhost', '127.0.0.1', '::1']).default('localhost'),
      max_concurrent_agents: positive
        .max(1_000)
        .default(3)
        .describe('agents at once over the whole service; --max-concurrent and MAX_CONCURRENT_AGENTS set this key'),
      worker_pool_size: positive
        .max(1_000)
        .optional()
        .describe('agents at once in one server process, which runs the smaller of both; unset: max_concurrent_agents'),
      auth: z.enum(['token', 'none']).default('token'),
      register_protocol_handler: z.boolean().default(true),
      queue_limit: positive.max(1_000_000).default(10_000),
      max_requests_per_second: positive.max(1_000_000).default(1_000),
      max_streams: positive.max(100_000).default(64),
      max_streams_per_task: positive.max(100_000).default(8),
    })
    .transform((server) => ({ ...server, worker_pool_size: server.worker_pool_size ?? server.max_concurrent_agents }))
    .prefault({}),
  api: z
    .strictObject({
      mode: z.enum(['direct', 'proxy']).default('direct'),
      max_tokens: positive.max(1_000_000).default(32_000),
      /** Tokens that the model reads at once; by default what is known of it, and else found out when it says "too long". */
      context_window: positive.min(1_000).max(100_000_000).optional(),
      provider_model: z.string().min(1).max(200).default('gpt-5.1'),
      proxy: z
        .strictObject({
          type: z.enum(['openai', 'litellm', 'generic']).default('generic'),
          base_url: httpUrl.optional(),
        })
        .prefault({}),
      base_url: httpUrl
        .refine(isSafeUrl, 'must be https, or an address of this machine')
        .default('https://api.openai.com/v1'),
      protocol: z.enum(['auto', 'responses', 'chat']).default('auto'),
      /** What a server of chat completions wants otherwise; `agent doctor --model` says which. */
      compat: z
        .strictObject({
          max_tokens_field: z.enum(['max_tokens', 'max_completion_tokens']).optional(),
          stream_options: z.boolean().default(true),
          tool_result_name: z.boolean().default(false),
          reply_after_tools: z.boolean().default(false),
          text_tool_calls: z.boolean().default(false),
        })
        .prefault({}),
      /** The whole of one model call. */
      timeout_seconds: positive.max(3_600).optional(),
      prices: z.record(z.string().min(1), price).default({}),
      /** `auto`: our own loop when there is a key, else a coding assistant that is logged in. */
      backend: backend.default('auto'),
      codex_path: program.optional(),
      codex_args: extraArguments,
      claude_path: program.optional(),
      claude_args: extraArguments,
      /** The command of the backend `command`; {prompt_file}, {task_id}, {role} and {model} are filled in. */
      command: z.array(z.string().min(1).max(4_000)).min(1).max(100).optional(),
      /** Names of environment variables that assistants get, beside their own credentials. */
      pass_environment: z
        .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable'))
        .max(50)
        .default([]),
      script: z
        .string()
        .min(1)
        .optional()
        .describe('what the scripted model plays; a path relative to this configuration file'),
    })
    .prefault({}),
  agent: z
    .strictObject({
      ...limits,
      /** What happens to a tool call that was at work when the server ended. */
      on_interrupted: z.enum(['ask', 'repeat', 'fail']).default('ask'),
      /** What becomes of tasks that depend on one that failed. */
      on_dependency_failure: z.enum(['wait', 'fail']).default('wait'),
      /** How long nothing may be heard of the model or of an assistant; a command has a time limit of its own. */
      idle_timeout_seconds: positive.max(86_400).default(1_800),
      answer_timeout_seconds: positive.max(86_400).default(3_600),
      /** What counts as the answer to a question when nobody answers in time; without it the attempt fails. */
      default_answer: z.string().trim().min(1).max(4_000).optional(),
      /** What becomes of calls that need leave when nobody answers in time: they are not made, or the attempt fails. */
      default_decision: z.enum(['deny', 'fail']).default('deny'),
      require_approval: z.array(tool).default([]),
      max_turns: positive.max(1_000).default(50),
      max_tokens_total: positive.default(1_000_000),
      /** How often a call of the model that failed in a way that may pass is made again within an attempt. */
      max_model_retries: z.int().min(0).max(20).default(5),
      max_retries: z.int().min(0).max(10).default(2),
    })
    .prefault({}),
  roles: z.partialRecord(z.enum(roles), roleSection).default({}),
  tracker: z
    .strictObject({
      mode: z.enum(['auto', 'bd', 'embedded']).default('auto'),
      /** Who claims; of several services on one database each needs a name of its own. */
      actor: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/, 'expected letters, digits and . _ @ -')
        .default('agent-server'),
      /** Leave a comment on the issue when an attempt ends. */
      notes: z.boolean().default(false),
      bd_path: z.string().refine(isAbsolute, 'must be an absolute path').optional(),
    })
    .prefault({}),
  sandbox: z
    .strictObject({
      /** `auto`: commands run in a sandbox or not at all; `required`: nor does the server start without one; `off`: as you. */
      mode: z.enum(['auto', 'required', 'off']).default('auto'),
      /** Whether commands may reach the network. */
      network: z.boolean().default(false),
      /** Whether whoever starts a run may open the network for its commands. */
      allow_task_network: z.boolean().default(false),
      /** What each process of a command may have; 0 for no limit. */
      memory_mb: z
        .int()
        .max(1_048_576)
        .refine((mb) => mb === 0 || mb >= 128, 'must be at least 128, or 0 for no limit')
        .default(4_096),
      /** Further folders that commands may read. */
      read_paths: z.array(z.string().refine(isAbsolute, 'must be an absolute path')).max(50).default([]),
    })
    .prefault({}),
  workspace: z
    .strictObject({
      /** `worktree`: each attempt in a git worktree of its own, where the project is in git; `shared`: in the project's folder. */
      mode: z.enum(['worktree', 'shared']).default('worktree'),
      /** What becomes of finished work: it stays on its branch, moves the project's branch on, or is one commit there. */
      merge: z.enum(mergeModes).default('none'),
      /** What is copied into a worktree although git does not know it, such as node_modules; relative to the project. */
      copy: z.array(z.string().refine(isInside, 'must be a path inside the project')).max(50).default([]),
    })
    .prefault({}),
  logging: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
      format: z.enum(['json', 'text']).default('json'),
    })
    .prefault({}),
});

/** The whole configuration (Spec 2.2, CONTRACT 8): its values also fit together. */
export const configSchema = configSections
  .refine(({ api: { mode, proxy } }) => mode !== 'proxy' || proxy.base_url !== undefined, {
    path: ['api', 'proxy', 'base_url'],
    message: 'is needed when api.mode is proxy',
  })
  .refine(
    ({ api, roles }) =>
      api.command !== undefined ||
      ![api.backend, ...Object.values(roles).map((own) => own?.backend)].includes('command'),
    { path: ['api', 'command'], message: 'is needed when a backend is command' },
  );
export type Config = z.infer<typeof configSchema>;
