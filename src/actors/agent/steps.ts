import { z } from 'zod';
import { failureCodes } from '../../machines/task.ts';
import { type ImageRef, imageRefSchema } from '../files/image.ts';
import type { Step } from '../store/port.ts';
import { commentAnswersSchema } from '../tools/finish.ts';
import { mayChangeFiles } from '../tools/toolbox.ts';
import type { EndedRun } from './live-runs.ts';
import { createStepLog, type StepLog } from './step-log.ts';
import {
  type CompactionSteps,
  createCompactionSteps,
  createImageSteps,
  createThinkSteps,
  createToolCallSteps,
  type ImageSteps,
  type ThinkSteps,
  type ToolCallSteps,
} from './turn-steps.ts';

const spentSchema = z.object({
  modelCalls: z.number(),
  toolCalls: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedTokens: z.number(),
  cacheWriteTokens: z.number().optional(),
  tokensUnknown: z.literal(true).optional(),
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

const createRunSteps = ({ intentOf, resultOf, write }: StepLog): RunSteps => ({
  run: (round) => {
    const intent = intentOf(runKey(round), runSchema);
    return intent === null
      ? null
      : { session: intent.session, end: resultOf(runKey(round), runEndSchema) };
  },
  beginRun: (round, session) => write(runKey(round), { session }),
  endRun: (round, session, delegated) => write(runKey(round), { session }, { delegated }),
});

const promptSchema = z.object({
  text: z.string(),
  instructionBytes: z.number().default(0),
  images: z.array(imageRefSchema).optional(),
});

/** The first message of the attempt: the same in every process. */
export interface FirstMessage {
  readonly text: string;
  /** The share of the project's instructions. */
  readonly instructionBytes: number;
  /** Those that a person attached. */
  readonly images?: readonly ImageRef[];
}

export interface PromptStep {
  prompt(): FirstMessage | null;
  keepPrompt(first: FirstMessage): Promise<void>;
}

/** The steps of the built-in loop. */
export interface TurnSteps extends ThinkSteps, CompactionSteps, ToolCallSteps, ImageSteps {}

/**
 * The journaled steps of an attempt: every call of a model, a tool or an assistant. The intent is
 * durable before the call, the result with what follows from it (ADR 0128). A step with a result is
 * never repeated.
 */
export interface Steps extends PromptStep, TurnSteps, RunSteps {}

const callSchema = z.object({ call: z.object({ tool: z.string() }) });

/**
 * The keys of the steps after which the folder may have been another one: calls of tools that change
 * files, and ends of assistants' runs.
 */
export const changesMade = (steps: readonly Step[]): readonly string[] =>
  steps
    .filter(
      ({ key, intent, result }) =>
        result !== null &&
        (key.startsWith('run:') ||
          (key.startsWith('act:') &&
            mayChangeFiles(callSchema.parse(JSON.parse(intent)).call.tool))),
    )
    .map(({ key }) => key);

const createPromptStep = ({ intentOf, writeWithNext }: StepLog): PromptStep => ({
  prompt: () => intentOf('prompt', promptSchema),
  keepPrompt: (first) => writeWithNext('prompt', first),
});

export const createSteps = async (...from: Parameters<typeof createStepLog>): Promise<Steps> => {
  const log = await createStepLog(...from);
  return {
    ...createPromptStep(log),
    ...createThinkSteps(log),
    ...createCompactionSteps(log),
    ...createToolCallSteps(log),
    ...createImageSteps(log),
    ...createRunSteps(log),
  };
};
