import type { SharedV3ProviderMetadata } from '@ai-sdk/provider';
import { z } from 'zod';
import { isJsonObject } from '../../machines/json.ts';

/**
 * Fields of chat completions for the reasoning of a model; each server wants it back in its own
 * field.
 */
export const reasoningFields = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;
export type ReasoningField = (typeof reasoningFields)[number];

const chatSchema = z.object({
  protocol: z.literal('chat'),
  field: z.enum(reasoningFields).optional(),
  text: z.string().optional(),
  /** Members of tool calls that must go back with them, such as signatures, by the call's id. */
  extras: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
});
const responsesSchema = z.object({
  protocol: z.literal('responses'),
  /**
   * Items as the provider sent them; `after` counts the text and calls of the answer before the
   * item.
   */
  items: z.array(z.object({ after: z.int(), item: z.record(z.string(), z.unknown()) })),
});

/** What a provider gave with a part, by provider: signatures, sealed thoughts. */
const partOptions = z.custom<SharedV3ProviderMetadata>(isJsonObject);
export type PartOptions = SharedV3ProviderMetadata;

const partsSchema = z.object({
  protocol: z.literal('parts'),
  /** `after` counts the text and calls of the answer before the thought. */
  items: z.array(z.object({ after: z.int(), text: z.string(), options: partOptions })),
  /** What was given with the text (``) and with calls, by id. */
  marks: z.record(z.string(), partOptions),
});

export const thoughtsSchema = z.discriminatedUnion('protocol', [
  chatSchema,
  responsesSchema,
  partsSchema,
]);
export type Thoughts = z.infer<typeof thoughtsSchema>;

export const reasoningSchema = z.object({
  /** Another model cannot read it. */
  model: z.string(),
  thinking: thoughtsSchema,
});
export type Reasoning = z.infer<typeof reasoningSchema>;

export const thoughtsFor = <Protocol extends Thoughts['protocol']>(
  reasoning: Reasoning | undefined,
  protocol: Protocol,
  model: string,
): Extract<Thoughts, { protocol: Protocol }> | null =>
  reasoning?.model === model && reasoning.thinking.protocol === protocol
    ? (reasoning.thinking as Extract<Thoughts, { protocol: Protocol }>)
    : null;
