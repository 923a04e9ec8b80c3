import { dirname, join } from 'node:path';
import { z } from 'zod';
import { handToClaude } from './hand-over.ts';
import type { Assistant, AssistantEvent } from './port.ts';
import {
  type AssistantProgram,
  homeIn,
  isTransient,
  parseJsonLine,
  sessionIdSchema,
} from './program.ts';

const claudeTokens = z.number().nonnegative().nullish();
const claudeUsageSchema = z.looseObject({
  input_tokens: claudeTokens,
  output_tokens: claudeTokens,
  cache_read_input_tokens: claudeTokens,
  cache_creation_input_tokens: claudeTokens,
});
const blockSchema = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.unknown().optional(),
  tool_use_id: z.string().optional(),
  content: z.unknown().optional(),
  is_error: z.boolean().nullish(),
});
type Block = z.infer<typeof blockSchema>;

const assistantSchema = z.looseObject({
  type: z.literal('assistant'),
  message: z.looseObject({
    id: z.string(),
    content: z.array(blockSchema),
    usage: claudeUsageSchema.optional(),
  }),
  parent_tool_use_id: z.string().nullish(),
  /** The kind of an error of the API, whose words are the text. */
  error: z.unknown().optional(),
});
const modelsSchema = z.record(
  z.string(),
  z.looseObject({
    inputTokens: claudeTokens,
    cacheReadInputTokens: claudeTokens,
    cacheCreationInputTokens: claudeTokens,
    costUSD: z.number().nonnegative(),
  }),
);
const claudeResultSchema = z.looseObject({
  type: z.literal('result'),
  subtype: z.string().default(''),
  is_error: z.boolean().default(false),
  result: z.string().optional(),
  errors: z.array(z.string()).default([]),
  /** HTTP status of the provider. */
  api_error_status: z.number().nullish().catch(null),
  usage: claudeUsageSchema.optional(),
  total_cost_usd: z.number().nonnegative().optional(),
  modelUsage: modelsSchema.optional(),
  model_usage_since_last_result: modelsSchema.optional(),
});
const limitSchema = z.looseObject({
  type: z.literal('rate_limit_event'),
  rate_limit_info: z.looseObject({
    status: z.string(),
    /** Epoch seconds. */
    resetsAt: z.number().nonnegative().nullish(),
  }),
});
const claudeLineSchema = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('system'),
    subtype: z.string(),
    session_id: sessionIdSchema.optional(),
    model: z.string().max(200).optional().catch(undefined),
  }),
  assistantSchema,
  z.looseObject({ type: z.literal('user'), message: z.looseObject({ content: z.unknown() }) }),
  claudeResultSchema,
  limitSchema,
]);

/** Cache reads and writes count as input. */
const tokensUsed = (usage: z.infer<typeof claudeUsageSchema>) => ({
  inputTokens:
    (usage.input_tokens ?? 0) +
    (usage.cache_read_input_tokens ?? 0) +
    (usage.cache_creation_input_tokens ?? 0),
  outputTokens: usage.output_tokens ?? 0,
  cachedTokens: usage.cache_read_input_tokens ?? 0,
  cacheWriteTokens: usage.cache_creation_input_tokens ?? 0,
});

const writeInputSchema = z.looseObject({ file_path: z.string() });
const writeTools: ReadonlySet<string> = new Set(['Write', 'Edit', 'MultiEdit', 'NotebookEdit']);

const blockEvents = ({ type, text, id, name = '', input }: Block): readonly AssistantEvent[] => {
  if (type === 'text' && text !== undefined) return [{ type: 'text', text }];
  if (type !== 'tool_use' || id === undefined) return [];
  const file = writeTools.has(name) ? writeInputSchema.safeParse(input).data?.file_path : undefined;
  return [
    { type: 'tool_started', callId: id, tool: name, arguments: JSON.stringify(input ?? {}) },
    ...(file === undefined ? [] : [{ type: 'changed' as const, path: file }]),
  ];
};

/** It does not say until when; the words may. */
const rateLimited: AssistantEvent = { type: 'limited', resetsAt: null };

const messageEvents = ({
  message,
  parent_tool_use_id,
  error,
}: z.infer<typeof assistantSchema>): readonly AssistantEvent[] => {
  const { id, content, usage } = message;
  const blocks =
    parent_tool_use_id == null ? content : content.filter(({ type }) => type !== 'text');
  return [
    ...(usage === undefined ? [] : [{ type: 'called' as const, id, used: tokensUsed(usage) }]),
    ...blocks.flatMap(blockEvents),
    ...(error === 'rate_limit' ? [rateLimited] : []),
  ];
};

const textSchema = z.array(z.looseObject({ text: z.string().default('') }));
const contentText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : (textSchema.safeParse(content).data ?? []).map(({ text }) => text).join('\n');

const toolResultEvents = (content: unknown): readonly AssistantEvent[] =>
  (z.array(blockSchema).safeParse(content).data ?? []).flatMap(
    ({ type, tool_use_id, content: output, is_error }) =>
      type === 'tool_result' && tool_use_id !== undefined
        ? [
            {
              type: 'tool_ended' as const,
              callId: tool_use_id,
              ok: is_error !== true,
              output: contentText(output),
            },
          ]
        : [],
  );

/**
 * The total covers the run (2.1.197, 2.1.260) or, after a resume, the session (2.1.300, 2.1.330).
 * Newer versions give the cost since the last result; for the others, the input that the total
 * covers tells the two apart.
 */
const costEvents = ({
  total_cost_usd,
  modelUsage,
  model_usage_since_last_result,
}: z.infer<typeof claudeResultSchema>) => {
  const each = Object.values(model_usage_since_last_result ?? modelUsage ?? {});
  if (model_usage_since_last_result !== undefined)
    return [{ type: 'cost' as const, usd: each.reduce((all, { costUSD }) => all + costUSD, 0) }];
  if (total_cost_usd === undefined) return [];
  const covered = each.reduce(
    (all, { inputTokens, cacheReadInputTokens, cacheCreationInputTokens }) =>
      all + (inputTokens ?? 0) + (cacheReadInputTokens ?? 0) + (cacheCreationInputTokens ?? 0),
    0,
  );
  return [
    {
      type: 'cost_so_far' as const,
      usd: total_cost_usd,
      inputTokens: modelUsage === undefined ? null : covered,
    },
  ];
};

const resultEvents = (line: z.infer<typeof claudeResultSchema>): readonly AssistantEvent[] => {
  const { subtype, is_error, result, errors, usage, api_error_status } = line;
  const message = [...errors, ...(result === undefined ? [] : [result])].join('; ') || subtype;
  return [
    ...(is_error && api_error_status === 429 ? [rateLimited] : []),
    subtype === 'success' && !is_error
      ? { type: 'result', text: result ?? null }
      : {
          type: 'failed',
          code: /max_(budget|turns)/.test(subtype) ? 'budget_exceeded' : 'model_failed',
          message,
          retryable: isTransient(message),
        },
    ...(usage === undefined
      ? []
      : [{ type: 'used' as const, since: 'run' as const, used: tokensUsed(usage) }]),
    ...costEvents(line),
  ];
};

const claudeEvents = (line: z.infer<typeof claudeLineSchema>): readonly AssistantEvent[] => {
  switch (line.type) {
    case 'system':
      if (line.subtype !== 'init') return [];
      return [
        ...(line.session_id === undefined
          ? []
          : [{ type: 'session' as const, id: line.session_id }]),
        ...(line.model === undefined ? [] : [{ type: 'model' as const, name: line.model }]),
      ];
    case 'assistant':
      return messageEvents(line);
    case 'user':
      return toolResultEvents(line.message.content);
    case 'rate_limit_event': {
      const { status, resetsAt } = line.rate_limit_info;
      const at = resetsAt == null ? null : resetsAt * 1_000;
      return status === 'rejected' ? [{ type: 'limited', resetsAt: at }] : [];
    }
    case 'result':
      return resultEvents(line);
  }
};

const claudeSettings =
  /^(\.claude\.json|settings(\.local)?\.json|CLAUDE\.md|agents|commands|hooks|output-styles|plugins|rules|scripts|skills|.*\.(sh|py|js|mjs))$/;

/**
 * `claude -p --output-format stream-json`. It edits files of the workspace without asking and does
 * nothing else that needs permission. It ignores the project's settings and servers: they could
 * change where model calls go.
 */
export const createClaude = ({ path = 'claude', args = [] }: AssistantProgram = {}): Assistant => ({
  name: 'claude',
  label: 'claude',
  variables: [
    ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL'],
    ...['CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_CONFIG_DIR'],
  ],
  providers: ['api.anthropic.com', 'claude.ai', 'console.anthropic.com', 'platform.claude.com'],
  reportsCost: true,
  tellsTokens: true,
  resumes: true,
  endsByExit: false,
  handOver: handToClaude,
  argv: ({ model, session, moneyLeftUsd, images = [], more = [] }) => [
    path,
    '-p',
    ...['--output-format', 'stream-json', '--verbose'],
    ...['--permission-mode', 'acceptEdits', '--setting-sources', 'user', '--strict-mcp-config'],
    ...more,
    ...(model === null ? [] : [`--model=${model}`]),
    ...(moneyLeftUsd === null ? [] : ['--max-budget-usd', String(moneyLeftUsd)]),
    // It asks before it reads outside of its folders, and nobody can answer.
    ...images.slice(0, 1).map(({ path: file }) => `--add-dir=${dirname(file)}`),
    ...args,
    ...(session === null ? [] : ['--resume', session]),
  ],
  needs: (env) => {
    const home = homeIn(env);
    const path = env['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude');
    return {
      home,
      folders: [
        { path, sessions: 'projects', credentials: '.credentials.json', shown: claudeSettings },
      ],
      files: [join(home, '.claude.json')],
      makesOwnSandbox: false,
    };
  },
  read: (text) => {
    const line = claudeLineSchema.safeParse(parseJsonLine(text));
    return line.success ? claudeEvents(line.data) : [];
  },
});
