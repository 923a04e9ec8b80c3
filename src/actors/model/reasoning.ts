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
export const thinkingSchema = z.discriminatedUnion('protocol', [chatSchema, responsesSchema]);
export type Thinking = z.infer<typeof thinkingSchema>;

export const reasoningSchema = z.object({
  /** Another model could not read it. */
  model: z.string(),
  thinking: thinkingSchema,
});
export type Reasoning = z.infer<typeof reasoningSchema>;

/** What of it goes back in a protocol to a model. */
export const thinkingFor = <Protocol extends Thinking['protocol']>(
  reasoning: Reasoning | undefined,
  protocol: Protocol,
  model: string,
): Extract<Thinking, { protocol: Protocol }> | null =>
  reasoning?.model === model && reasoning.thinking.protocol === protocol
    ? (reasoning.thinking as Extract<Thinking, { protocol: Protocol }>)
    : null;
