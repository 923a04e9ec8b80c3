import { z } from 'zod';
import type { Delegated } from '../../machines/agent-context.ts';
import { failureCodes, type TaskId } from '../../machines/task.ts';
import type { Journal } from '../journal/journal.ts';
import type { ModelEvent, ModelUsage, ToolCall } from '../model/port.ts';
import { reasoningSchema } from '../model/reasoning.ts';
import type { Store } from '../store/port.ts';
import type { CallResult } from '../tools/port.ts';
import type { Compaction } from './compaction.ts';

export type ModelAnswer = Extract<ModelEvent, { type: 'answered' }>;

const toolCallSchema = z.object({ id: z.string(), tool: z.string(), arguments: z.string() });
const promptSchema = z.object({ text: z.string() });
const thinkSchema = z.object({ said: z.array(z.string()) });
const modelUsageSchema = z.object({ inputTokens: z.number(), outputTokens: z.number(), cachedTokens: z.number() });
const answeredSchema = z.object({
  type: z.literal('answered'),
  text: z.string(),
  calls: z.array(toolCallSchema),
  truncated: z.boolean(),
  usage: modelUsageSchema,
  reasoning: reasoningSchema.optional(),
});
const compactSchema = z.object({ heard: z.boolean() });
const keptSchema = z.object({
  compaction: z.object({ summary: z.string().nullable(), from: z.int(), resultBytes: z.int().nullable() }),
  usage: modelUsageSchema.nullable(),
});
const toolStepSchema = z.object({ call: toolCallSchema });
const callResultSchema = z.object({
  callId: z.string(),
  tool: z.string(),
  ok: z.boolean(),
  text: z.string(),
  durationMs: z.number(),
  finish: z
    .object({ status: z.enum(['done', 'failed']), summary: z.string(), artifacts: z.array(z.string()) })
    .nullable(),
  question: z.string().nullable(),
  malformed: z.boolean().default(false),
});

const spentSchema = z.object({
  modelCalls: z.number(),
  toolCalls: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedTokens: z.number(),
  costUsd: z.number().nullable(),
});
const delegatedSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('done'), summary: z.string(), artifacts: z.array(z.string()), spent: spentSchema }),
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

/** `usage` is the usage of the summary; null when the model was not called. */
export interface KeptCompaction {
  readonly compaction: Compaction;
  readonly usage: ModelUsage | null;
}

export interface BegunRun {
  /** The assistant's session id, by which the run can be resumed. */
  readonly session: string | null;
  /** Null: the outcome is unknown. `delegated` is null when the run was stopped in good order. */
  readonly end: { readonly delegated: Delegated | null } | null;
}

/** A tool call that began; without a result its outcome is unknown. */
export interface BegunCall {
  readonly call: ToolCall;
  readonly result: CallResult | null;
}

/**
 * The journaled steps of an attempt: every call of a model, a tool or an assistant. The intent is
 * durable before the call, the result before anything follows from it. A step with a result is
 * never repeated.
 */
export interface Steps {
  prompt(): string | null;
  keepPrompt(text: string): Promise<void>;
  /** The messages before a turn and the answer; null before the model is called. */
  thought(turn: number): { readonly said: readonly string[]; readonly answer: ModelAnswer | null } | null;
  think(turn: number, said: readonly string[]): Promise<void>;
  thinkEnded(turn: number, said: readonly string[], answer: ModelAnswer): Promise<void>;
  /** The compaction before a turn; `heard` when it follows the turn's messages. `kept` is null until it is decided. */
  compaction(turn: number): { readonly heard: boolean; readonly kept: KeptCompaction | null } | null;
  compact(turn: number, heard: boolean): Promise<void>;
  compacted(turn: number, heard: boolean, kept: KeptCompaction): Promise<void>;
  /** In the order in which the calls began. */
  calls(turn: number): readonly BegunCall[];
  call(turn: number, callId: string): BegunCall | null;
  act(turn: number, call: ToolCall): Promise<void>;
  actEnded(turn: number, call: ToolCall, result: CallResult): Promise<void>;
  /** A new round begins each time work is sent back. */
  run(round: number): BegunRun | null;
  beginRun(round: number, session: string | null): Promise<void>;
  endRun(round: number, session: string | null, delegated: Delegated | null): Promise<void>;
}

export const createSteps = (
  store: Pick<Store, 'steps'>,
  journal: Pick<Journal, 'commit'>,
  { taskId, attempt }: { readonly taskId: TaskId; readonly attempt: number },
): Steps => {
  const known = new Map(store.steps(taskId, attempt).map(({ key, intent, result }) => [key, { intent, result }]));

  const write = async (key: string, intent: unknown, result: unknown = null): Promise<void> => {
    const texts = { intent: JSON.stringify(intent), result: result === null ? null : JSON.stringify(result) };
    // The commit also makes the buffered frames of this step durable.
    await journal.commit({ entries: [], step: { taskId, attempt, key, ...texts } });
    known.set(key, texts);
  };
  const intentOf = <Shape>(key: string, schema: z.ZodType<Shape>): Shape | null => {
    const step = known.get(key);
    return step === undefined ? null : schema.parse(JSON.parse(step.intent));
  };
  const resultOf = <Shape>(key: string, schema: z.ZodType<Shape>): Shape | null => {
    const text = known.get(key)?.result ?? null;
    return text === null ? null : schema.parse(JSON.parse(text));
  };
  const callAt = (key: string): BegunCall | null => {
    const intent = intentOf(key, toolStepSchema);
    if (intent === null) return null;
    return { call: intent.call, result: resultOf(key, callResultSchema) };
  };

  return {
    prompt: () => intentOf('prompt', promptSchema)?.text ?? null,
    keepPrompt: (text) => write('prompt', { text }),
    thought: (turn) => {
      const intent = intentOf(`think:${turn}`, thinkSchema);
      return intent === null ? null : { said: intent.said, answer: resultOf(`think:${turn}`, answeredSchema) };
    },
    think: (turn, said) => write(`think:${turn}`, { said }),
    thinkEnded: (turn, said, answer) => write(`think:${turn}`, { said }, answer),
    compaction: (turn) => {
      const intent = intentOf(`compact:${turn}`, compactSchema);
      return intent === null ? null : { heard: intent.heard, kept: resultOf(`compact:${turn}`, keptSchema) };
    },
    compact: (turn, heard) => write(`compact:${turn}`, { heard }),
    compacted: (turn, heard, kept) => write(`compact:${turn}`, { heard }, kept),
    calls: (turn) =>
      [...known.keys()].filter((key) => key.startsWith(`act:${turn}:`)).flatMap((key) => callAt(key) ?? []),
    call: (turn, callId) => callAt(`act:${turn}:${callId}`),
    act: (turn, call) => write(`act:${turn}:${call.id}`, { call }),
    actEnded: (turn, call, result) => write(`act:${turn}:${call.id}`, { call }, result),
    run: (round) => {
      const intent = intentOf(`run:${round}`, runSchema);
      return intent === null ? null : { session: intent.session, end: resultOf(`run:${round}`, runEndSchema) };
    },
    beginRun: (round, session) => write(`run:${round}`, { session }),
    endRun: (round, session, delegated) => write(`run:${round}`, { session }, { delegated }),
  };
};
