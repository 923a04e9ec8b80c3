import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { costText } from '../output/money.ts';
import { tokenCount } from '../output/next-steps.ts';
import { type Cell, renderTable } from '../output/render/table.ts';
import { durationText } from '../output/times.ts';
import { UsageError } from '../words/usage-error.ts';

const sumsSchema = z.looseObject({
  attempts: z.number(),
  complete: z.number(),
  failed: z.number(),
  cancelled: z.number(),
  seconds: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cost_usd: z.number().optional(),
});
const usageAnswerSchema = z.looseObject({
  days: z.array(sumsSchema.extend({ day: z.string(), role: z.string() })),
  total: sumsSchema,
  spent: z.object({ day_usd: z.number(), month_usd: z.number() }),
});

const usageHeader = [
  'DAY',
  'ROLE',
  'TRIES',
  'COMPLETE',
  'FAILED',
  'CANCELLED',
  'TIME',
  'TOKENS',
  'COST',
];
const mayBeLeftOut: ReadonlySet<string> = new Set(['FAILED', 'CANCELLED']);
const isNotZero =
  (at: number) =>
  (row: readonly Cell[]): boolean =>
    row[at]?.text !== '0';
const defaultDays = 30;

const usageRow = (day: string, role: string, sums: z.infer<typeof sumsSchema>): readonly Cell[] =>
  [
    day,
    role,
    String(sums.attempts),
    String(sums.complete),
    String(sums.failed),
    String(sums.cancelled),
    durationText(sums.seconds * 1_000),
    `${tokenCount(sums.input_tokens)}/${tokenCount(sums.output_tokens)}`,
    costText(sums.cost_usd) ?? '-',
  ].map((text) => ({ text }));

/** Prints the usage of the last days, per day (UTC) and role, with a line for the sum. */
export const showUsage = async (
  { connection, io, json }: CommandContext,
  days: number = defaultDays,
): Promise<number> => {
  if (!(Number.isSafeInteger(days) && days > 0 && days <= 36_500))
    throw new UsageError(`--days needs a whole number from 1; ${days} is none`);
  const since = new Date(Date.now() - (days - 1) * dayMs).toISOString().slice(0, 10);
  const client = await connection.files();
  const answer = usageAnswerSchema.parse(await client.call('usage', { since }));
  if (json) {
    io.json(answer);
    return exitCodes.done;
  }
  const rows = answer.days.map((each) => usageRow(each.day, each.role, each));
  const sum = answer.days.length > 1 ? [usageRow('total', '', answer.total)] : [];
  const all = [...rows, ...sum];
  // On a terminal a column of zeros only makes the lines too long.
  const says = (at: number): boolean =>
    io.width === null || !mayBeLeftOut.has(usageHeader[at] ?? '') || all.some(isNotZero(at));
  const shown = <Each>(row: readonly Each[]): readonly Each[] => row.filter((_, at) => says(at));
  io.out(renderTable(shown(usageHeader), all.map(shown), null));
  if (answer.days.length === 0) io.err(`no attempt ended since ${since}`);
  const { day_usd: day, month_usd: month } = answer.spent;
  if (month > 0)
    io.out(
      `spent today ${costText(day)}, this month ${costText(month)}, with what attempts that are not over cost so far`,
    );
  return exitCodes.done;
};
