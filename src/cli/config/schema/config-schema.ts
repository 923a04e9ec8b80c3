import { z } from 'zod';
import { filterNames, mergeModes } from '../../../actors/workspace/port.ts';
import { parseWorkAddress } from '../../../actors/workspace/travel/address.ts';
import { a2aVersions } from '../../../http/a2a/protocol.ts';
import { answerPolicies } from '../../../http/mcp/backend.ts';
import { quotaPolicies } from '../../../machines/agent/agent-context.ts';
import { roles } from '../../../machines/task.ts';
import { approvedTool, backend, limitKeys, roleSection, usd } from '../../roles/role-schema.ts';
import {
  absolutePath,
  extraArguments,
  homePath,
  httpUrl,
  isInsideProject,
  networkAccess,
  port,
  positive,
  price,
  storeUrl,
} from './config-values.ts';
import { forgeSection, trackerSources } from './forge-schema.ts';
import { mcpServers } from './mcp-schema.ts';
import { notifySection } from './notify-schema.ts';
import { policySection } from './policy-schema.ts';
import { providers, providerUrl } from './provider-schema.ts';

/** Each section is checked alone; `configSchema` checks how they fit together. */
export const configSections = z.strictObject({
  server: z
    .strictObject({
      port: port
        .default(8080)
        .describe('port to listen on; 0 takes any free port, and the CLI finds it'),
      host: z
        .enum(['localhost', '127.0.0.1', '::1'])
        .default('localhost')
        .describe('address to listen on; always this machine only'),
      max_concurrent_agents: positive
        .max(1_000)
        .default(3)
        .describe('how many agents may run at once'),
      worker_pool_size: positive
        .max(1_000)
        .optional()
        .describe(
          'how many agents this server runs, if others share its store; unset: max_concurrent_agents',
        ),
      roles: z
        .array(z.enum(roles))
        .min(1)
        .optional()
        .describe(
          'roles that this server runs, if others share its store; unset: all; tasks of other roles wait for the other servers',
        ),
      auth: z
        .enum(['token', 'none'])
        .default('token')
        .describe(
          'token: every request needs the token; none: every program of this machine may use the server',
        ),
      token_file: absolutePath
        .optional()
        .describe(
          'file with the token of this server and of the others that share its store; unset: a token of its own in the state folder',
        ),
      register_protocol_handler: z
        .boolean()
        .default(true)
        .describe('register agent:// links at the first start on a desktop'),
      queue_limit: positive
        .max(1_000_000)
        .default(10_000)
        .describe('how many tasks may wait for a slot'),
      max_requests_per_second: positive
        .max(1_000_000)
        .default(1_000)
        .describe('JSON-RPC requests per second; more get status 429'),
      max_streams: positive
        .max(100_000)
        .default(64)
        .describe('open event streams of the whole server; more get status 503'),
      max_streams_per_task: positive
        .max(100_000)
        .default(8)
        .describe('open event streams of one task; more get status 429'),
    })
    .transform((server) => ({
      ...server,
      worker_pool_size: server.worker_pool_size ?? server.max_concurrent_agents,
    }))
    .prefault({}),
  api: z
    .strictObject({
      mode: z
        .enum(['direct', 'proxy'])
        .default('direct')
        .describe('direct: call api.base_url; proxy: call api.proxy.base_url'),
      max_tokens: positive
        .max(1_000_000)
        .default(32_000)
        .describe('output tokens of one model call'),
      context_window: positive
        .min(1_000)
        .max(100_000_000)
        .optional()
        .describe(
          'tokens that the model can read at once; unset: the known value of the model, or learned from its first refusal',
        ),
      provider_model: z
        .string()
        .min(1)
        .max(200)
        .default('gpt-5.1')
        .describe(
          'the model that agents use unless a role or a run names another; <provider>/<model>, or a name alone for the provider whose key is set: openai, anthropic, google or openrouter',
        ),
      proxy: z
        .strictObject({
          type: z
            .enum(['openai', 'litellm', 'generic'])
            .default('generic')
            .describe('kind of proxy'),
          base_url: httpUrl
            .optional()
            .describe('address of the proxy; needed when api.mode is proxy'),
        })
        .prefault({}),
      base_url: providerUrl
        .default('https://api.openai.com/v1')
        .describe(
          'address of the provider of models whose name has none; https, or an address of this machine or of your network',
        ),
      protocol: z
        .enum(['auto', 'responses', 'chat'])
        .default('auto')
        .describe('the API to speak; auto: responses at api.openai.com, chat elsewhere'),
      compat: z
        .strictObject({
          max_tokens_field: z
            .enum(['max_tokens', 'max_completion_tokens'])
            .optional()
            .describe('the field that limits output tokens; unset: chosen by host'),
          stream_options: z
            .boolean()
            .default(true)
            .describe('ask for usage at the end of a stream'),
          tool_result_name: z
            .boolean()
            .default(false)
            .describe('send the name of the tool with its result'),
          reply_after_tools: z
            .boolean()
            .default(false)
            .describe('put an assistant message between tool results and the next user message'),
          text_tool_calls: z
            .boolean()
            .default(false)
            .describe('read tool calls that the model prints as text'),
        })
        .prefault({}),
      timeout_seconds: positive.max(3_600).optional().describe('time limit of one model call'),
      prices: z
        .record(z.string().min(1), price)
        .default({})
        .describe(
          'prices by model name, before those that come with the package; a model that neither has needs one for limits of cost',
        ),
      backend: backend
        .default('auto')
        .describe(
          'who does the work; auto: the built-in loop when a key is set, else an assistant that is logged in',
        ),
      codex_path: absolutePath.optional().describe('path of codex; unset: found on PATH'),
      codex_args: extraArguments.describe('more arguments for codex'),
      claude_path: absolutePath.optional().describe('path of claude; unset: found on PATH'),
      claude_args: extraArguments.describe('more arguments for claude'),
      command: z
        .array(z.string().min(1).max(4_000))
        .min(1)
        .max(100)
        .optional()
        .describe(
          'program and arguments of the backend command; {prompt_file}, {task_id}, {role} and {model} are replaced',
        ),
      acp: z
        .strictObject({
          command: z
            .preprocess(
              (given) => (typeof given === 'string' ? given.trim().split(/\s+/) : given),
              z.array(z.string().min(1).max(4_000)).min(1).max(100),
            )
            .optional()
            .describe(
              'agent of the backend acp: opencode, gemini, copilot, codex-acp or claude-agent-acp, or a program with its arguments',
            ),
        })
        .prefault({}),
      pass_environment: z
        .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable'))
        .max(50)
        .default([])
        .describe('more environment variables that assistants get, by name'),
      script: z
        .string()
        .min(1)
        .optional()
        .describe('file that the scripted model plays, relative to this file'),
    })
    .prefault({}),
  agent: z
    .strictObject({
      ...limitKeys,
      on_interrupted: z
        .enum(['ask', 'repeat', 'fail'])
        .default('ask')
        .describe(
          'what to do after a crash with a tool call whose outcome is unknown: ask a person, repeat it, or fail the attempt',
        ),
      on_dependency_failure: z
        .enum(['wait', 'fail'])
        .default('wait')
        .describe('what a queued task does when a task that it depends on fails or is cancelled'),
      on_quota: z
        .enum(quotaPolicies)
        .default('park')
        .describe(
          'at a limit of the provider that lasts longer than five minutes, or a used-up quota: wait for its end without a slot, or fail the attempt',
        ),
      idle_timeout_seconds: positive
        .max(86_400)
        .default(1_800)
        .describe('how long a model or an assistant may be silent before the attempt fails'),
      answer_timeout_seconds: z
        .int()
        .min(0)
        .max(86_400)
        .default(0)
        .describe("how long an agent waits for a person's answer; 0: no limit"),
      default_answer: z
        .string()
        .trim()
        .min(1)
        .max(4_000)
        .optional()
        .describe('the answer to a question that nobody answers in time; unset: the attempt fails'),
      default_decision: z
        .enum(['deny', 'fail'])
        .default('deny')
        .describe(
          'what happens to calls that nobody approves in time: deny them, or fail the attempt',
        ),
      require_approval: z
        .array(approvedTool)
        .default([])
        .describe("tools that need a person's approval, for every role"),
      max_turns: positive.max(1_000).default(50).describe('turns of one attempt'),
      max_tokens_total: positive
        .default(1_000_000)
        .describe('input and output tokens of one attempt'),
      max_model_retries: z
        .int()
        .min(0)
        .max(20)
        .default(5)
        .describe('how often a model call is repeated within an attempt after a temporary failure'),
      max_retries: z
        .int()
        .min(0)
        .max(10)
        .default(2)
        .describe('how many more attempts a task gets after a temporary failure'),
    })
    .prefault({}),
  providers,
  budget: z
    .strictObject({
      run_usd: usd
        .optional()
        .describe(
          'cost of one run in USD: of one task, or of all tasks of one agent run; the price must be known',
        ),
      day_usd: usd
        .optional()
        .describe(
          'cost of a day (UTC) in USD, of all servers of a store together; the price must be known',
        ),
      month_usd: usd
        .optional()
        .describe(
          'cost of a month (UTC) in USD, of all servers of a store together; the price must be known',
        ),
    })
    .prefault({}),
  policy: policySection.prefault({}),
  roles: z.partialRecord(z.enum(roles), roleSection).default({}).describe('settings of one role'),
  tracker: z
    .strictObject({
      mode: z
        .enum(['auto', 'bd', 'embedded'])
        .default('auto')
        .describe(
          'who keeps the tasks; auto: bd where it keeps this project, else the built-in tracker (embedded)',
        ),
      actor: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/, 'expected letters, digits and . _ @ -')
        .default('agent-server')
        .describe(
          'name under which the server claims tasks; several servers on one database need different names',
        ),
      notes: z
        .boolean()
        .default(false)
        .describe('write a comment on the task when an attempt ends'),
      export_node: z
        .string()
        .min(1)
        .optional()
        .describe(
          'of servers that share a store, the one that keeps .beads/issues.jsonl (`agent nodes` names them); unset: the first',
        ),
      sources: trackerSources,
      bd_path: absolutePath.optional().describe('path of bd; unset: found on PATH'),
    })
    .prefault({}),
  sandbox: z
    .strictObject({
      mode: z
        .enum(['auto', 'required', 'off'])
        .default('auto')
        .describe(
          'auto: commands run in the sandbox or are refused; required: the server does not start without a sandbox; off: commands run as you',
        ),
      assistants: z
        .enum(['on', 'off'])
        .default('on')
        .describe(
          'on: codex, claude and the command of api.command run in the sandbox, too; off: they run as you',
        ),
      home: z
        .enum(['empty', 'copy'])
        .default('empty')
        .describe(
          'the home folder of the programs of api.command and api.acp.command in the sandbox: empty but for their own files; copy: with copies of home_paths, made at each start, which they may change and which end with them',
        ),
      home_paths: z
        .array(homePath)
        .max(50)
        .default([])
        .describe(
          'for home: copy, such as .gemini: paths below your home folder, 64 MiB and 10000 files in all. Links are not followed. Left out unless they are named: .ssh, .gnupg, .aws and such; always: files of this server',
        ),
      network: networkAccess
        .default(false)
        .describe(
          'what commands may reach: false: nothing; a list of hosts, with *. for all below one: these, through a proxy; true: the whole network of this machine, loopback and private addresses included. Assistants reach every public host, unless it is true or a list',
        ),
      allow_task_network: z
        .boolean()
        .default(false)
        .describe('a run may ask for the network (--network)'),
      memory_mb: z
        .int()
        .max(1_048_576)
        .refine((mb) => mb === 0 || mb >= 128, 'must be at least 128, or 0 for no limit')
        .default(4_096)
        .describe(
          'memory of each process of a command, in MiB: at least 128 (Node 24 starts with 640), or 0 for no limit',
        ),
      read_paths: z
        .array(absolutePath)
        .max(50)
        .default([])
        .describe('more folders that commands may read; absolute paths'),
    })
    .prefault({}),
  workspace: z
    .strictObject({
      mode: z
        .enum(['worktree', 'shared'])
        .default('worktree')
        .describe(
          'worktree: each attempt has a git worktree; shared: all attempts work in the project folder',
        ),
      merge: z
        .enum(mergeModes)
        .default('none')
        .describe(
          'what happens to finished work: it stays on its branch, the branch of the project is fast-forwarded to it (ff), or it becomes one commit there (squash)',
        ),
      repository: z
        .string()
        .min(1)
        .superRefine((text, { addIssue }) => {
          const address = parseWorkAddress(text);
          if (typeof address === 'string') addIssue({ code: 'custom', message: address });
        })
        .nullable()
        .default(null)
        .describe(
          'a bare git repository that all servers of a shared store reach: a path, or an ssh:// or https:// address; work of agents goes from server to server through it, on branches agent/…',
        ),
      copy: z
        .array(z.string().refine(isInsideProject, 'must be a path inside the project'))
        .max(50)
        .default([])
        .describe(
          'paths inside the project that are copied into each worktree although git ignores them, such as node_modules',
        ),
      keep: z
        .array(
          z.string().min(1).max(500).refine(isInsideProject, 'must be a path inside the project'),
        )
        .max(50)
        .default([])
        .describe(
          'ignored files that are copied into the results of a task when an attempt ends, such as out/**; at most 1,000 files of together 64 MiB',
        ),
      setup: z
        .preprocess(
          (given) => {
            if (typeof given === 'string') return { commands: [given] };
            return Array.isArray(given) ? { commands: given } : given;
          },
          z.strictObject({
            commands: z
              .array(z.string().min(1).max(4_096))
              .max(20)
              .default([])
              .describe(
                'commands that run in each new worktree before its agent, such as npm ci; workspace.setup may also be one command, or a list of them',
              ),
            network: networkAccess
              .default(false)
              .describe(
                'what they may reach, as sandbox.network; nothing where an agent wrote what no person has merged',
              ),
            timeout_seconds: z
              .int()
              .min(1)
              .max(3_600)
              .default(600)
              .describe('time limit of each command'),
            cache: z
              .array(
                z.string().regex(/^[\w@+-][\w.@+-]*$/, 'must be a name at the top of the project'),
              )
              .max(20)
              .default(['node_modules'])
              .describe(
                'folders that are kept for later worktrees with the same lockfile; the commands do not run there',
              ),
          }),
        )
        .prefault({}),
      filters: z
        .array(z.enum(filterNames))
        .default([])
        .describe(
          'git filters that a merge may run for files whose .gitattributes ask for them; no other runs',
        ),
    })
    .prefault({}),
  merge: z
    .strictObject({
      style: z
        .enum(['squash', 'ff', 'merge'])
        .default('squash')
        .describe(
          'what a merge by a person makes of the work of a task: one commit on the tip of the branch (squash), a merge commit that keeps those of the attempt (merge), or a fast-forward, which needs a branch that has not moved on (ff)',
        ),
      verify: z
        .array(z.string().min(1).max(4_096))
        .max(20)
        .default([])
        .describe(
          "commands that must pass, with those of the task, on the exact tree that the project's branch gets, such as npm test; without any it lands untested",
        ),
      timeout_seconds: z
        .int()
        .min(1)
        .max(3_600)
        .default(1_800)
        .describe('time limit of each of these commands'),
      max_batch: z
        .int()
        .min(1)
        .max(50)
        .default(5)
        .describe('most tasks that are tested together; of those that fail, the culprit is found'),
      on_conflict: z
        .enum(['ask', 'resolve'])
        .default('ask')
        .describe(
          'when the branch changed the same lines: a person decides (ask), or another attempt resolves it, which is merged then (resolve)',
        ),
      on_red: z
        .enum(['ask', 'send_back'])
        .default('ask')
        .describe(
          'when a command fails with the work on the branch: a person decides (ask), or another attempt gets the output, which is merged then (send_back)',
        ),
      max_rounds: z
        .int()
        .min(1)
        .max(10)
        .default(2)
        .describe('how often in a row work is sent back without a person'),
      sign: z
        .boolean()
        .default(false)
        .describe(
          'whether commits that land are signed, with the key and the program of your own git configuration (user.signingkey, gpg.*); what cannot be signed does not land',
        ),
      regenerate: z
        .record(
          z
            .string()
            .min(1)
            .refine(
              (path) => !/^\/|(^|\/)\.{0,2}(\/|$)|\0/.test(path),
              'a path of a file below the project, with /',
            ),
          z.string().min(1).max(4_096),
        )
        .default({})
        .describe(
          'files that are not merged but made anew where both sides changed them, each with the command that makes it, such as {"package-lock.json": "npm install --package-lock-only"}; it runs in the sandbox, in a folder of the merge',
        ),
      radar: z
        .enum(['off', 'show', 'tell'])
        .default('show')
        .describe(
          'whether the server looks for conflicts between unmerged work while agents are at work: it shows them to people (show), also tells its own agents before their next turn (tell), or does not look (off)',
        ),
    })
    .prefault({}),
  hub: z
    .strictObject({
      port: port
        .default(8090)
        .describe(
          'port of the page of all your projects, in your file for every project; it counts when the hub starts; 0, or a port that is in use: any free port, which is kept',
        ),
    })
    .prefault({}),
  store: z
    .strictObject({
      url: storeUrl
        .optional()
        .describe(
          'where tasks and journal are kept: postgres://user@host:5432/database, the name of a variable that holds such an address (DATABASE_URL), or the path of an SQLite file; unset: an SQLite file in the state folder',
        ),
      retention_days: z
        .int()
        .min(0)
        .max(36_500)
        .default(90)
        .describe(
          'how many days after the end of a task its journal is kept; work that is not merged keeps it; 0: for ever',
        ),
      lease_seconds: z
        .int()
        .min(3)
        .max(86_400)
        .default(120)
        .describe(
          'how long a server may be silent before another one may take over its attempts; one that was paused for longer goes on if none did',
        ),
    })
    .prefault({}),
  logging: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .default('info')
        .describe('least severe message that is logged'),
      format: z
        .enum(['json', 'text'])
        .default('json')
        .describe('format of the log; on a terminal text, unless you choose one'),
    })
    .prefault({}),
  forge: forgeSection,
  notify: notifySection,
  a2a: z
    .strictObject({
      versions: z
        .array(z.enum(a2aVersions))
        .min(1)
        .default(['1.0'])
        .describe('the versions of the A2A protocol that are served'),
      strict_version: z
        .boolean()
        .default(false)
        .describe(
          'a request without the header A2A-Version is one of 0.3, as the protocol has it; false: the name of its method says its version',
        ),
      public_url: httpUrl
        .optional()
        .describe(
          'address of the server as its clients reach it through a proxy; the cards name it; unset: the address by which a card is asked for',
        ),
    })
    .prefault({}),
  mcp: z
    .strictObject({
      answer: z
        .enum(answerPolicies)
        .default('questions')
        .describe(
          'what an assistant may answer by MCP; questions: questions of agents; all: also whether calls that need approval are made; off: nothing',
        ),
      servers: mcpServers,
    })
    .prefault({}),
  telemetry: z
    .strictObject({
      otlp_endpoint: httpUrl
        .optional()
        .describe(
          'address of an OpenTelemetry collector that gets traces (OTLP over HTTP); unset: no trace leaves this machine',
        ),
    })
    .prefault({}),
});

/** The whole configuration, including how its values fit together. */
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
  )
  .refine(
    ({ api, roles }) =>
      api.acp.command !== undefined ||
      ![api.backend, ...Object.values(roles).map((own) => own?.backend)].includes('acp'),
    { path: ['api', 'acp', 'command'], message: 'is needed when a backend is acp' },
  )
  .refine(({ forge, workspace }) => forge.publish === 'never' || workspace.merge === 'none', {
    path: ['forge', 'publish'],
    message:
      'when_complete needs workspace.merge none: work lands by its pull request, or by itself',
  })
  .refine(({ policy, forge }) => policy.merge === 'anyone' || forge.merge === 'never', {
    path: ['policy', 'merge'],
    message:
      'not_author needs forge.merge never: the server would merge for whoever published the work',
  })
  .refine(({ policy, workspace }) => policy.merge === 'anyone' || workspace.merge === 'none', {
    path: ['policy', 'merge'],
    message:
      'not_author needs workspace.merge none: work that lands by itself has no second person',
  })
  .refine(({ agent }) => agent.default_answer === undefined || agent.answer_timeout_seconds > 0, {
    path: ['agent', 'default_answer'],
    message:
      'has no effect while agent.answer_timeout_seconds is 0; set that to a number of seconds',
  });
export type Config = z.infer<typeof configSchema>;
