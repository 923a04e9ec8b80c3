import { createReadStream } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { commandProblem } from './codex-command.ts';
import { createLineSplitter } from './line-splitter.ts';
import type { AssistantEvent, TokensUsed, WatchSession } from './port.ts';
import { homeIn, parseJsonLine } from './program.ts';

const threadPollMs = 250;
const longestLine = 8 * 1024 * 1024;
const dayMs = 24 * 3_600_000;

const codexTokens = z.number().nonnegative().default(0);
const codexUsageSchema = z
  .looseObject({ input_tokens: codexTokens, cached_input_tokens: codexTokens, output_tokens: codexTokens })
  .transform(
    ({ input_tokens, cached_input_tokens, output_tokens }): TokensUsed => ({
      inputTokens: input_tokens,
      outputTokens: output_tokens,
      cachedTokens: cached_input_tokens,
    }),
  );
const threadLineSchema = z.union([
  // After each call of the model; older versions have none.
  z.object({
    timestamp: z.string(),
    type: z.literal('token_usage_record'),
    payload: z.object({ response_id: z.string(), usage: codexUsageSchema }),
  }),
  // When the tools that the call asked for have ended.
  z.object({
    timestamp: z.string(),
    type: z.literal('event_msg'),
    payload: z.object({ type: z.literal('token_count'), info: z.object({ total_token_usage: codexUsageSchema }) }),
  }),
  // A command that ends at once is not printed.
  z.object({
    timestamp: z.string(),
    type: z.literal('response_item'),
    payload: z.object({ type: z.literal('function_call_output'), output: z.string() }),
  }),
]);
const recordTypes = /"(token_usage_record|token_count|function_call_output)"/;

export const codexHome = (env: Readonly<Record<string, string>>): string =>
  env['CODEX_HOME'] ?? join(homeIn(env), '.codex');

/** What a line of the file says that was written in this run. */
const threadEvent = (text: string, since: number): AssistantEvent | null => {
  if (!recordTypes.test(text)) return null;
  const line = threadLineSchema.safeParse(parseJsonLine(text));
  if (!line.success || Date.parse(line.data.timestamp) < since) return null;
  const { data } = line;
  if (data.type === 'token_usage_record')
    return { type: 'called', id: `${data.timestamp}/${data.payload.response_id}`, used: data.payload.usage };
  if (data.type === 'event_msg') return { type: 'used', since: 'session', used: data.payload.info.total_token_usage };
  const { output } = data.payload;
  const [head = '', own] = output.split('\nOutput:\n');
  const problem = commandProblem(own ?? output);
  // Other tools answer here, too.
  return problem === null && !head.includes('Process exited with code') ? null : { type: 'command', problem };
};

/** An id of version 7 begins with the time at which the thread began. */
const beganAt = (session: string): number => {
  const [, high = '', low = ''] = /^([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(session) ?? [];
  return high === '' ? Date.now() : Number.parseInt(high + low, 16);
};

/** The file of a thread lies in the folder of its day, as it was where codex ran. */
const findThreadFile = async (home: string, session: string): Promise<string | null> => {
  for (const days of [0, -1, 1]) {
    const [year = '', month = '', day = ''] = new Date(beganAt(session) + days * dayMs).toISOString().split(/[-T]/);
    const folder = join(home, 'sessions', year, month, day);
    const name = (await readdir(folder).catch(() => [])).find((each) => each.endsWith(`-${session}.jsonl`));
    if (name !== undefined) return join(folder, name);
  }
  return null;
};

/**
 * codex prints what it used only when its turn is over, and writes it into the file of its thread after every call of the
 * model. The form of that file is codex's own: where it is not found or reads differently, nothing is said until the end.
 */
export const watchThread: WatchSession = ({ session, env, since, onEvent }) => {
  const home = codexHome(env);
  let file: string | null = null;
  let read = 0;
  let reading: Promise<void> | null = null;
  const lines = createLineSplitter({
    longest: longestLine,
    onLine: (line) => {
      const event = threadEvent(line, since);
      if (event !== null) onEvent(event);
    },
    onDropped: () => {},
  });

  const readOn = async (): Promise<void> => {
    file ??= await findThreadFile(home, session);
    if (file === null) return;
    // What is in the folder is the assistant's: not the file that a link points to.
    const stat = await lstat(file);
    if (!stat.isFile() || stat.size <= read) return;
    const stream = createReadStream(file, { start: read, end: stat.size - 1, encoding: 'utf8' });
    for await (const text of stream) lines.push(text);
    read = stat.size;
  };
  const look = (): Promise<void> => {
    reading ??= readOn()
      .catch(() => {})
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  const timer = setInterval(look, threadPollMs);
  return async () => {
    clearInterval(timer);
    await reading;
    await look();
  };
};
