import { closeSync, createReadStream, fstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import { openRegular } from '../files/regular-file.ts';
import { createLineSplitter, maxEventLine } from '../process/line-splitter.ts';
import { sessionsFolder } from '../sandbox/bubblewrap-mounts.ts';
import { handToCodex } from './hand-over.ts';
import {
  type Assistant,
  type AssistantEvent,
  noTokens,
  type TokensUsed,
  type WatchSession,
} from './port.ts';
import {
  type AssistantProgram,
  homeIn,
  isTransient,
  parseJsonLine,
  sessionIdSchema,
} from './program.ts';

/** Printed in place of a command's output when its sandbox or its program cannot be started. */
const startFailure =
  /^(bwrap: |thread '[^']*' (\(\d+\) )?panicked at linux-sandbox|exec_command failed|(execution error|failed to spawn)\b|codex-linux-sandbox: )/;

/** The reason why codex could not start a command, or null. */
const commandProblem = (output: string): string | null => {
  const text = output.trim();
  return startFailure.test(text) ? (text.split('\n')[0] ?? '').slice(0, 500) : null;
};

const sessionPollMs = 250;
const lastLookMs = 3_000;

const codexTokens = z.number().nonnegative().default(0);
const codexUsageSchema = z
  .looseObject({
    input_tokens: codexTokens,
    cached_input_tokens: codexTokens,
    cache_write_input_tokens: codexTokens,
    output_tokens: codexTokens,
  })
  .transform(
    (given): TokensUsed => ({
      inputTokens: given.input_tokens,
      outputTokens: given.output_tokens,
      cachedTokens: given.cached_input_tokens,
      cacheWriteTokens: given.cache_write_input_tokens,
    }),
  );
const sessionLineSchema = z.union([
  // Written after each call of the model; older versions write none.
  z.object({
    timestamp: z.string(),
    type: z.literal('token_usage_record'),
    payload: z.object({ response_id: z.string(), usage: codexUsageSchema }),
  }),
  // Written when the tools of a call have ended.
  z.object({
    timestamp: z.string(),
    type: z.literal('event_msg'),
    payload: z.object({
      type: z.literal('token_count'),
      info: z.object({ total_token_usage: codexUsageSchema }),
    }),
  }),
  // codex does not print a command that ends at once.
  z.object({
    timestamp: z.string(),
    type: z.literal('response_item'),
    payload: z.object({ type: z.literal('function_call_output'), output: z.string() }),
  }),
]);
const recordTypes = /"(token_usage_record|token_count|function_call_output)"/;

const codexHome = (env: Readonly<Record<string, string>>): string =>
  env['CODEX_HOME'] ?? join(homeIn(env), '.codex');

/** Ignores records from before `since` (epoch ms), which belong to earlier runs. */
const sessionEvent = (text: string, since: number): AssistantEvent | null => {
  if (!recordTypes.test(text)) return null;
  const line = sessionLineSchema.safeParse(parseJsonLine(text));
  if (!line.success || Date.parse(line.data.timestamp) < since) return null;
  const { data } = line;
  if (data.type === 'token_usage_record')
    return {
      type: 'called',
      id: `${data.timestamp}/${data.payload.response_id}`,
      used: data.payload.usage,
    };
  if (data.type === 'event_msg')
    return { type: 'used', since: 'session', used: data.payload.info.total_token_usage };
  const { output } = data.payload;
  const [head = '', own] = output.split('\nOutput:\n');
  const problem = commandProblem(own ?? output);
  // Other tools use this record, too.
  return problem === null && !head.includes('Process exited with code')
    ? null
    : { type: 'command', problem };
};

/** The start of the session (epoch ms), which an id of version 7 begins with. */
const beganAt = (session: string): number => {
  const [, high = '', low = ''] = /^([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(session) ?? [];
  return high === '' ? Date.now() : Number.parseInt(high + low, 16);
};

/** The file is in the folder of the day on which the session began, in codex's time zone. */
const findSessionFile = async (sessions: string, session: string): Promise<string | null> => {
  for (const days of [0, -1, 1]) {
    const [year = '', month = '', day = ''] = new Date(beganAt(session) + days * dayMs)
      .toISOString()
      .split(/[-T]/);
    const folder = join(sessions, year, month, day);
    const name = (await readdir(folder).catch(() => [])).find((each) =>
      each.endsWith(`-${session}.jsonl`),
    );
    if (name !== undefined) return join(folder, name);
  }
  return null;
};

/**
 * Reads usage from the session file, which codex extends after every model call; codex prints usage
 * only at the end of its turn. The format is codex's own: when the file is missing or different,
 * usage comes at the end only.
 */
export const watchSession: WatchSession = ({ session, root, env, since, onEvent }) => {
  const home = codexHome(env);
  let file: string | null = null;
  let readBytes = 0;
  let reading: Promise<void> | null = null;
  const stopReading = new AbortController();
  const lines = createLineSplitter({
    longest: maxEventLine,
    onLine: (line) => {
      const event = sessionEvent(line, since);
      if (event !== null) onEvent(event);
    },
    onDropped: () => {},
  });

  const readMore = async (): Promise<void> => {
    // In the sandbox, or outside it if the user configured that.
    file ??=
      (await findSessionFile(sessionsFolder(home, root), session)) ??
      (await findSessionFile(join(home, 'sessions'), session));
    if (file === null) return;
    // The assistant can write in this folder, and put a link or a pipe there at any moment.
    const fd = openRegular(file);
    const { size } = fstatSync(fd);
    if (size <= readBytes) return closeSync(fd);
    // The stream closes it.
    const range = { fd, start: readBytes, end: size - 1 };
    const stream = createReadStream('', { ...range, encoding: 'utf8', signal: stopReading.signal });
    for await (const text of stream) lines.push(text);
    readBytes = size;
  };
  const look = (): Promise<void> => {
    reading ??= readMore()
      .catch(() => {})
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  const timer = setInterval(look, sessionPollMs);
  return async () => {
    clearInterval(timer);
    const limit = setTimeout(() => stopReading.abort(), lastLookMs);
    await reading;
    await look();
    clearTimeout(limit);
  };
};

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
  argv: ({ model, session, images = [], more = [] }) => [
    path,
    'exec',
    ...['--json', '--skip-git-repo-check'],
    ...(choosesSandbox(args) ? [] : ['--sandbox', 'workspace-write']),
    ...['-c', 'shell_environment_policy.ignore_default_excludes=false'],
    ...more,
    ...(model === null ? [] : [`--model=${model}`]),
    ...args,
    // A session that goes on has them.
    ...(session === null ? images.map(({ path: file }) => `--image=${file}`) : []),
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
