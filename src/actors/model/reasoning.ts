import { z } from 'zod';

/** The fields in which servers of chat completions put what their model thought; each wants it back in its own. */
export const reasoningFields = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;
export type ReasoningField = (typeof reasoningFields)[number];

const chatSchema = z.object({ protocol: z.literal('chat'), field: z.enum(reasoningFields), text: z.string() });
const responsesSchema = z.object({
  protocol: z.literal('responses'),
  /** Items as the provider gave them, and how many of the answer's other parts (its text, its calls) came before. */
  items: z.array(z.object({ after: z.int(), item: z.record(z.string(), z.unknown()) })),
});

/** What a model thought before an answer, to be given back word for word; nobody reads it here. */
export const thoughtsSchema = z.discriminatedUnion('protocol', [chatSchema, responsesSchema]);
export type Thoughts = z.infer<typeof thoughtsSchema>;

export const reasoningSchema = z.object({
  /** Another model could not read it. */
  model: z.string(),
  thinking: thoughtsSchema,
});
export type Reasoning = z.infer<typeof reasoningSchema>;

/** What of it goes back in a protocol to a model. */
export const thoughtsFor = <Protocol extends Thoughts['protocol']>(
  reasoning: Reasoning | undefined,
  protocol: Protocol,
  model: string,
): Extract<Thoughts, { protocol: Protocol }> | null =>
  reasoning?.model === model && reasoning.thinking.protocol === protocol
    ? (reasoning.thinking as Extract<Thoughts, { protocol: Protocol }>)
    : null;
