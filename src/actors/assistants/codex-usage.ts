import { closeSync, createReadStream, fstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import { openRegular } from '../files/regular-file.ts';
import { createLineSplitter, maxEventLine } from '../process/line-splitter.ts';
import { sessionsFolder } from '../sandbox/assistant-mounts.ts';
import { commandProblem } from './codex-command.ts';
import type { AssistantEvent, TokensUsed, WatchSession } from './port.ts';
import { homeIn, parseJsonLine } from './program.ts';

const sessionPollMs = 250;
const lastLookMs = 3_000;

const codexTokens = z.number().nonnegative().default(0);
export const codexUsageSchema = z
  .looseObject({
    input_tokens: codexTokens,
    cached_input_tokens: codexTokens,
    output_tokens: codexTokens,
  })
  .transform(
    ({ input_tokens, cached_input_tokens, output_tokens }): TokensUsed => ({
      inputTokens: input_tokens,
      outputTokens: output_tokens,
      cachedTokens: cached_input_tokens,
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

export const codexHome = (env: Readonly<Record<string, string>>): string =>
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
