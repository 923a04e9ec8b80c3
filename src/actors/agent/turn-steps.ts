import { z } from 'zod';
import { imageRefSchema } from '../files/image.ts';
import type { ModelEvent, ModelUsage, ToolCall } from '../model/port.ts';
import { reasoningSchema } from '../model/reasoning.ts';
import { commentAnswersSchema } from '../tools/finish.ts';
import type { CallResult } from '../tools/port.ts';
import type { Compaction } from './compaction.ts';
import type { StepLog } from './step-log.ts';

export type ModelAnswer = Extract<ModelEvent, { type: 'answered' }>;

const savedCallSchema = z.object({ id: z.string(), tool: z.string(), arguments: z.string() });
const thinkSchema = z.object({ said: z.array(z.string()) });
const modelUsageSchema = z.object({
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedTokens: z.number(),
  cacheWriteTokens: z.number().optional(),
});
const answeredSchema = z.object({
  type: z.literal('answered'),
  text: z.string(),
  calls: z.array(savedCallSchema),
  truncated: z.boolean(),
  usage: modelUsageSchema,
  reasoning: reasoningSchema.optional(),
});
const compactSchema = z.object({ heard: z.boolean() });
const keptSchema = z.object({
  compaction: z.object({
    summary: z.string().nullable(),
    from: z.int(),
    resultBytes: z.int().nullable(),
  }),
  usage: modelUsageSchema.nullable(),
});
const toolStepSchema = z.object({ call: savedCallSchema });
const callResultSchema = z.object({
  callId: z.string(),
  tool: z.string(),
  ok: z.boolean(),
  text: z.string(),
  durationMs: z.number(),
  finish: z
    .object({
      status: z.enum(['done', 'failed']),
      summary: z.string(),
      artifacts: z.array(z.string()),
      answers: commentAnswersSchema.default([]),
    })
    .nullable(),
  question: z.string().nullable(),
  malformed: z.boolean().default(false),
  instructions: z.object({ paths: z.array(z.string()), bytes: z.number() }).optional(),
  images: z.array(imageRefSchema).optional(),
});

/** `usage` is the usage of the summary; null when the model was not called. */
export interface KeptCompaction {
  readonly compaction: Compaction;
  readonly usage: ModelUsage | null;
}

/** A tool call that began; without a result its outcome is unknown. */
export interface BegunCall {
  readonly call: ToolCall;
  readonly result: CallResult | null;
}

/** The model calls of the built-in loop, one for each turn. */
export interface ThinkSteps {
  /** The messages before a turn and the answer; null before the model is called. */
  thought(
    turn: number,
  ): { readonly said: readonly string[]; readonly answer: ModelAnswer | null } | null;
  recordRequest(turn: number, said: readonly string[]): Promise<void>;
  recordAnswer(turn: number, said: readonly string[], answer: ModelAnswer): Promise<void>;
}

export interface CompactionSteps {
  /**
   * The compaction before a turn; `heard` when it follows the turn's messages. `kept` is null until
   * it is decided.
   */
  compaction(
    turn: number,
  ): { readonly heard: boolean; readonly kept: KeptCompaction | null } | null;
  recordCompaction(turn: number, heard: boolean): Promise<void>;
  recordCompacted(turn: number, heard: boolean, kept: KeptCompaction): Promise<void>;
}

export interface ToolCallSteps {
  /** In the order in which the calls began. */
  calls(turn: number): readonly BegunCall[];
  call(turn: number, callId: string): BegunCall | null;
  /** The key of its step: by its place in the turn, since a provider's id may be of any length. */
  keyOf(turn: number, callId: string): string;
  recordCall(turn: number, call: ToolCall): Promise<void>;
  recordCallResult(turn: number, call: ToolCall, result: CallResult): Promise<void>;
}

export const createThinkSteps = ({
  intentOf,
  resultOf,
  write,
  writeWithNext,
}: StepLog): ThinkSteps => ({
  thought: (turn) => {
    const intent = intentOf(`think:${turn}`, thinkSchema);
    return intent === null
      ? null
      : { said: intent.said, answer: resultOf(`think:${turn}`, answeredSchema) };
  },
  recordRequest: (turn, said) => write(`think:${turn}`, { said }),
  recordAnswer: (turn, said, answer) => writeWithNext(`think:${turn}`, { said }, answer),
});

export const createCompactionSteps = ({ intentOf, resultOf, write }: StepLog): CompactionSteps => ({
  compaction: (turn) => {
    const intent = intentOf(`compact:${turn}`, compactSchema);
    return intent === null
      ? null
      : { heard: intent.heard, kept: resultOf(`compact:${turn}`, keptSchema) };
  },
  recordCompaction: (turn, heard) => write(`compact:${turn}`, { heard }),
  recordCompacted: (turn, heard, kept) => write(`compact:${turn}`, { heard }, kept),
});

export const createToolCallSteps = ({
  keys,
  intentOf,
  resultOf,
  write,
  writeWithNext,
}: StepLog): ToolCallSteps => {
  const callAt = (key: string): BegunCall | null => {
    const intent = intentOf(key, toolStepSchema);
    return intent === null ? null : { call: intent.call, result: resultOf(key, callResultSchema) };
  };
  const begun = (turn: number): readonly string[] =>
    keys().filter((key) => key.startsWith(`act:${turn}:`));
  const keyOf: ToolCallSteps['keyOf'] = (turn, callId) => {
    const before = begun(turn);
    // Steps of earlier versions have the id in their key.
    return (
      before.find((key) => callAt(key)?.call.id === callId) ?? `act:${turn}:${before.length + 1}`
    );
  };
  return {
    calls: (turn) => begun(turn).flatMap((key) => callAt(key) ?? []),
    call: (turn, callId) => callAt(keyOf(turn, callId)),
    keyOf,
    recordCall: (turn, call) => write(keyOf(turn, call.id), { call }),
    recordCallResult: (turn, call, result) => writeWithNext(keyOf(turn, call.id), { call }, result),
  };
};

/** True where the model of the attempt takes images. */
export interface ImageSteps {
  imagesRefused(): boolean;
  /** From now on, and after a restart, it is sent none. */
  recordImagesRefused(): Promise<void>;
}

export const createImageSteps = ({ intentOf, write }: StepLog): ImageSteps => ({
  imagesRefused: () => intentOf('images', z.object({ refused: z.boolean() }))?.refused === true,
  recordImagesRefused: () => write('images', { refused: true }),
});
