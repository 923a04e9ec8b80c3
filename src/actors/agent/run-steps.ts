import { z } from 'zod';
import { failureCodes } from '../../machines/task.ts';
import { commentAnswersSchema } from '../tools/finish.ts';
import type { EndedRun } from './live-runs.ts';
import type { StepLog } from './step-log.ts';

const spentSchema = z.object({
  modelCalls: z.number(),
  toolCalls: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedTokens: z.number(),
  tokensUnknown: z.literal(true).exactOptional(),
  costUsd: z.number().nullable(),
});
const delegatedSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('done'),
    summary: z.string(),
    artifacts: z.array(z.string()),
    answers: commentAnswersSchema.optional(),
    spent: spentSchema,
  }),
  z.object({
    kind: z.literal('failed'),
    failure: z.object({
      code: z.enum(failureCodes),
      message: z.string(),
      facts: z.record(z.string(), z.unknown()),
      retryable: z.boolean(),
    }),
    spent: spentSchema,
  }),
]);
const runSchema = z.object({ session: z.string().nullable() });
const runEndSchema = z.object({ delegated: delegatedSchema.nullable() });

export interface BegunRun {
  /** The assistant's session id, by which the run can be resumed. */
  readonly session: string | null;
  /** Null: the outcome is unknown. `delegated` is null when the run was stopped in good order. */
  readonly end: { readonly delegated: EndedRun | null } | null;
}

/** The runs of an assistant. A new round begins each time work is sent back. */
export interface RunSteps {
  run(round: number): BegunRun | null;
  beginRun(round: number, session: string | null): Promise<void>;
  endRun(round: number, session: string | null, delegated: EndedRun | null): Promise<void>;
}

export const runKey = (round: number): string => `run:${round}`;

export const createRunSteps = ({ intentOf, resultOf, write }: StepLog): RunSteps => ({
  run: (round) => {
    const intent = intentOf(runKey(round), runSchema);
    return intent === null
      ? null
      : { session: intent.session, end: resultOf(runKey(round), runEndSchema) };
  },
  beginRun: (round, session) => write(runKey(round), { session }),
  endRun: (round, session, delegated) => write(runKey(round), { session }, { delegated }),
});
