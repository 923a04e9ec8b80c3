import { z } from 'zod';
import { messageOf } from '../../machines/message-of.ts';
import { createLineSplitter } from '../process/line-splitter.ts';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import { ForgeError } from './port.ts';

const linesAtMost = 50;
const lineAtMost = 300;
const longestLine = 16 * 1024;
const logAtMost = 32 * 1024 * 1024;
const textAtMost = 20_000;

const jobSchema = z.object({
  name: z.string(),
  steps: z
    .array(
      z.object({
        name: z.string(),
        conclusion: z.string().nullish(),
        started_at: z.string().nullish(),
        completed_at: z.string().nullish(),
      }),
    )
    .nullish(),
});
type Step = NonNullable<z.infer<typeof jobSchema>['steps']>[number];

const failedStates = new Set(['failure', 'timed_out', 'cancelled']);
const stamp = /^\uFEFF?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z ?/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours
const colours = /\u001b\[[0-9;]*[A-Za-z]/g;

const timeOf = (at: string | null | undefined, otherwise: number): number => {
  const time = Date.parse(at ?? '');
  return Number.isNaN(time) ? otherwise : time;
};

/**
 * Keeps the last lines that the step printed. A log has the lines of all steps of the job, each with
 * its time; the step ends with an error line.
 */
const createLastLines = (step: Step | undefined) => {
  const from = timeOf(step?.started_at, 0);
  // Their times have whole seconds.
  const until = timeOf(step?.completed_at, Number.POSITIVE_INFINITY) + 999;
  const kept: string[] = [];
  let atError: readonly string[] = [];
  let isOver = false;
  return {
    isOver: () => isOver,
    read: () => (atError.length > 0 ? atError : kept),
    push: (line: string): void => {
      const at = Date.parse(`${stamp.exec(line)?.[1] ?? ''}Z`);
      isOver ||= at > until;
      if (isOver || at < from) return;
      const text = line.slice(0, longestLine).replace(stamp, '').replace(colours, '').trimEnd();
      kept.push(text.length > lineAtMost ? `${text.slice(0, lineAtMost)}…` : text);
      if (kept.length > linesAtMost) kept.shift();
      if (text.startsWith('##[error]')) atError = [...kept];
    },
  };
};

const lastLines = async (log: ReadableStream<Uint8Array>, step: Step | undefined) => {
  const last = createLastLines(step);
  let isBeginning = false;
  const splitter = createLineSplitter({
    longest: longestLine,
    keepsEmpty: true,
    onLine: last.push,
    onDropped: () => {
      isBeginning = true;
    },
    onDroppedText: (piece) => {
      if (isBeginning && piece !== null) last.push(piece);
      isBeginning = false;
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const chunk of log) {
    size += chunk.length;
    splitter.push(decoder.decode(chunk, { stream: true }));
    if (last.isOver() || size > logAtMost) break;
  }
  splitter.end();
  return size > logAtMost ? [...last.read(), '[the rest of the log was not read]'] : last.read();
};

/** What a token may not read is said, and is no reason to keep the rest back. */
export const orWhy = async <Result>(
  read: () => Promise<Result>,
): Promise<Result | { readonly why: string }> => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ForgeRefusal && ['right', 'gone', 'refused'].includes(error.fault))
      return { why: error.message };
    throw error;
  }
};

/** Reads the last lines that the failed step of a job printed, by an API of GitHub that Gitea has too. */
export const createJobLog =
  ({ ask, fileAt }: ForgeClient) =>
  async (job: string, signal: AbortSignal): Promise<string> => {
    const path = `actions/jobs/${job}`;
    const read = await orWhy(() => ask({ path, schema: jobSchema, signal }));
    if ('why' in read) return `The log cannot be read: ${read.why}`;
    const step = read.steps?.find(({ conclusion }) => failedStates.has(conclusion ?? ''));
    const log = await orWhy(() => fileAt(`${path}/logs`, signal));
    const name =
      step === undefined ? `Job ${read.name}` : `Step "${step.name}" of job ${read.name}`;
    if (log === null) return `${name} failed. Its log is not there any more.`;
    if ('why' in log) return `${name} failed. Its log cannot be read: ${log.why}`;
    const lines = await lastLines(log, step).catch((error: unknown) => {
      throw new ForgeError('away', `the log of ${read.name} ended early: ${messageOf(error)}`);
    });
    return `${name} failed. Its last lines:\n${lines.join('\n')}`;
  };

/** What is known of a check that failed; at most 20,000 characters. */
export const failureText = (
  name: string,
  url: string | undefined,
  parts: readonly (string | null | undefined)[],
): string => {
  const head = url === undefined ? `${name} failed.` : `${name} failed: ${url}`;
  const text = [head, ...parts].filter(Boolean).join('\n\n');
  // The end has the last lines of the log.
  const cut = text.length - textAtMost;
  if (cut <= 0) return text;
  const gap = '\n[left out]\n';
  return `${head.slice(0, 1_000)}${gap}${text.slice(-(textAtMost - 1_000 - gap.length))}`;
};
