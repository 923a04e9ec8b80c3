import { z } from 'zod';
import { commandProblem } from './codex-command.ts';
import { codexHome, codexUsageSchema, watchSession } from './codex-usage.ts';
import { handToCodex } from './hand-over.ts';
import { type Assistant, type AssistantEvent, noTokens } from './port.ts';
import {
  type AssistantProgram,
  homeIn,
  isTransient,
  parseJsonLine,
  sessionIdSchema,
} from './program.ts';

const itemSchema = z.looseObject({
  id: z.string(),
  type: z.string(),
  text: z.string().optional(),
  message: z.string().optional(),
  command: z.string().optional(),
  aggregated_output: z.string().optional(),
  exit_code: z.number().nullish(),
  status: z.string().optional(),
  changes: z.array(z.looseObject({ path: z.string(), kind: z.string().optional() })).optional(),
  server: z.string().optional(),
  tool: z.string().optional(),
  arguments: z.unknown().optional(),
  query: z.string().optional(),
});
type Item = z.infer<typeof itemSchema>;

const codexLineSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('thread.started'), thread_id: sessionIdSchema }),
  z.looseObject({ type: z.literal('item.started'), item: itemSchema }),
  z.looseObject({ type: z.literal('item.completed'), item: itemSchema }),
  z.looseObject({ type: z.literal('turn.completed'), usage: codexUsageSchema.optional() }),
  z.looseObject({
    type: z.literal('turn.failed'),
    error: z.looseObject({ message: z.string() }).optional(),
  }),
  z.looseObject({ type: z.literal('error'), message: z.string() }),
]);

const codexArguments = ({
  type,
  command,
  changes,
  server,
  tool,
  arguments: given,
  query,
}: Item): object => {
  if (type === 'command_execution') return { command };
  if (type === 'file_change') return { changes };
  return type === 'web_search' ? { query } : { server, tool, arguments: given };
};

/** Other items, such as reasoning and plans, are not shown. */
const toolNamesByItem: Readonly<Record<string, string>> = {
  command_execution: 'command',
  file_change: 'file_change',
  mcp_tool_call: 'mcp',
  web_search: 'web_search',
};

const startedEvents = (item: Item): readonly AssistantEvent[] => {
  const tool = toolNamesByItem[item.type];
  if (tool === undefined) return [];
  return [
    {
      type: 'tool_started',
      callId: item.id,
      tool,
      arguments: JSON.stringify(codexArguments(item)),
    },
  ];
};

const commandEvents = (
  { type, aggregated_output = '' }: Item,
  ok: boolean,
): readonly AssistantEvent[] =>
  type === 'command_execution'
    ? [{ type: 'command', problem: ok ? null : commandProblem(aggregated_output) }]
    : [];

const completedEvents = (item: Item): readonly AssistantEvent[] => {
  if (item.type === 'agent_message') return [{ type: 'text', text: item.text ?? '' }];
  if (item.type === 'error') return [{ type: 'note', level: 'warn', message: item.message ?? '' }];
  if (toolNamesByItem[item.type] === undefined) return [];
  const ok = item.status === undefined || item.status === 'completed';
  const changed = ok ? (item.changes ?? []).filter(({ kind }) => kind !== 'delete') : [];
  return [
    { type: 'tool_ended', callId: item.id, ok, output: item.aggregated_output ?? '' },
    ...commandEvents(item, ok),
    ...changed.map(({ path }) => ({ type: 'changed' as const, path })),
  ];
};

const codexEvents = (line: z.infer<typeof codexLineSchema>): readonly AssistantEvent[] => {
  switch (line.type) {
    case 'thread.started':
      return [{ type: 'session', id: line.thread_id }];
    case 'item.started':
      return startedEvents(line.item);
    case 'item.completed':
      return completedEvents(line.item);
    case 'error':
      return [{ type: 'note', level: 'warn', message: line.message }];
    case 'turn.failed': {
      const message = line.error?.message ?? 'it gave no reason';
      return [{ type: 'failed', code: 'model_failed', message, retryable: isTransient(message) }];
    }
    case 'turn.completed':
      // After a resume, too, it counts from the beginning of the session (checked with 0.169).
      return [
        { type: 'result', text: null },
        { type: 'used', since: 'session', used: line.usage ?? noTokens },
      ];
  }
};

const codexSettings =
  /^(.*\.toml|AGENTS(\.override)?\.md|agents|hooks|hooks\.json|plugins|prompts|rules|skills)$/;

/** codex accepts the option once; the user's wins. */
const choosesSandbox = (args: readonly string[]): boolean =>
  args.some((arg) =>
    /^(-s|--sandbox(=.*)?|--dangerously-bypass-approvals-and-sandbox|--approve-for-me)$/.test(arg),
  );

/**
 * `codex exec --json`. Its own sandbox confines its commands to the workspace and keeps keys out of
 * their environment. Its own rules let no project choose the provider.
 */
export const createCodex = ({ path = 'codex', args = [] }: AssistantProgram = {}): Assistant => ({
  name: 'codex',
  label: 'codex',
  variables: ['CODEX_HOME', 'CODEX_API_KEY', 'OPENAI_API_KEY'],
  providers: ['api.openai.com', 'chatgpt.com', 'auth.openai.com'],
  reportsCost: false,
  tellsTokens: true,
  resumes: true,
  endsByExit: false,
  watch: watchSession,
  handOver: handToCodex,
  argv: ({ model, session, more = [] }) => [
    path,
    'exec',
    ...['--json', '--skip-git-repo-check'],
    ...(choosesSandbox(args) ? [] : ['--sandbox', 'workspace-write']),
    ...['-c', 'shell_environment_policy.ignore_default_excludes=false'],
    ...more,
    ...(model === null ? [] : [`--model=${model}`]),
    ...args,
    ...(session === null ? [] : ['resume', session]),
    '-',
  ],
  needs: (env) => ({
    home: homeIn(env),
    folders: [
      {
        path: codexHome(env),
        sessions: 'sessions',
        credentials: 'auth.json',
        shown: codexSettings,
      },
    ],
    files: [],
    makesOwnSandbox: true,
  }),
  read: (text) => {
    const line = codexLineSchema.safeParse(parseJsonLine(text));
    return line.success ? codexEvents(line.data) : [];
  },
});
