import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { createLines } from './lines.ts';
import type { Used, Watch } from './port.ts';
import { homeIn, jsonIn } from './program.ts';

const pollMs = 1_000;
const longestLine = 8 * 1024 * 1024;
const dayMs = 24 * 3_600_000;

const tokens = z.number().nonnegative().default(0);
const countSchema = z.object({
  payload: z.object({
    type: z.literal('token_count'),
    info: z.object({
      total_token_usage: z.looseObject({ input_tokens: tokens, cached_input_tokens: tokens, output_tokens: tokens }),
    }),
  }),
});

export const codexHome = (env: Readonly<Record<string, string>>): string =>
  env['CODEX_HOME'] ?? join(homeIn(env), '.codex');

/** What a line of the file says that the thread has used, or null. */
const usedIn = (line: string): Used | null => {
  if (!line.includes('"token_count"')) return null;
  const count = countSchema.safeParse(jsonIn(line));
  if (!count.success) return null;
  const { input_tokens, cached_input_tokens, output_tokens } = count.data.payload.info.total_token_usage;
  return { inputTokens: input_tokens, outputTokens: output_tokens, cachedTokens: cached_input_tokens };
};

/** An id of version 7 begins with the time at which the thread began. */
const beganAt = (session: string): number => {
  const [, high = '', low = ''] = /^([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(session) ?? [];
  return high === '' ? Date.now() : Number.parseInt(high + low, 16);
};

/** The file of a thread lies in the folder of its day, as it was where codex ran. */
const fileOf = async (home: string, session: string): Promise<string | null> => {
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
export const watchThread: Watch = ({ session, env, onUsed }) => {
  const home = codexHome(env);
  let file: string | null = null;
  let read = 0;
  let isReading = false;
  const lines = createLines({
    longest: longestLine,
    onLine: (line) => {
      const used = usedIn(line);
      if (used !== null) onUsed(used);
    },
    onDropped: () => {},
  });

  const readOn = async (): Promise<void> => {
    file ??= await fileOf(home, session);
    if (file === null) return;
    const { size } = await stat(file);
    if (size <= read) return;
    const stream = createReadStream(file, { start: read, end: size - 1, encoding: 'utf8' });
    for await (const text of stream) lines.push(text);
    read = size;
  };
  const timer = setInterval(() => {
    if (isReading) return;
    isReading = true;
    void readOn()
      .catch(() => {})
      .finally(() => {
        isReading = false;
      });
  }, pollMs);
  return () => clearInterval(timer);
};
