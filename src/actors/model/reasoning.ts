import { z } from 'zod';

/**
 * Fields of chat completions for the reasoning of a model; each server wants it back in its own
 * field.
 */
export const reasoningFields = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;
export type ReasoningField = (typeof reasoningFields)[number];

const chatSchema = z.object({
  protocol: z.literal('chat'),
  field: z.enum(reasoningFields),
  text: z.string(),
});
const responsesSchema = z.object({
  protocol: z.literal('responses'),
  /**
   * Items as the provider sent them; `after` counts the text and calls of the answer before the
   * item.
   */
  items: z.array(z.object({ after: z.int(), item: z.record(z.string(), z.unknown()) })),
});

export const thoughtsSchema = z.discriminatedUnion('protocol', [chatSchema, responsesSchema]);
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
