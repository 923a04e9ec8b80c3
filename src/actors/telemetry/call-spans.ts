import { z } from 'zod';
import type { Entry } from '../store/port.ts';
import type { Span, TraceIds } from './span.ts';

const failureSchema = z.looseObject({ code: z.string() });
const modelCallSchema = z.looseObject({
  model: z.string(),
  turn: z.number(),
  duration_ms: z.number(),
  ok: z.boolean(),
  error: failureSchema.optional(),
  input_tokens: z.number().optional(),
  output_tokens: z.number().optional(),
  cached_tokens: z.number().optional(),
});
const toolSpanSchema = z.looseObject({
  call_id: z.string(),
  tool: z.string(),
  ok: z.boolean(),
  duration_ms: z.number(),
});

type CallSpan = Pick<Span, 'name' | 'kind' | 'attributes' | 'error'> & { readonly ms: number };

/** Names of the semantic conventions for generative AI; no text of a prompt or an answer. */
const modelCall = (data: unknown): CallSpan | null => {
  const { data: call } = modelCallSchema.safeParse(data);
  if (call === undefined) return null;
  return {
    name: `chat ${call.model}`,
    kind: 'client',
    ms: call.duration_ms,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': call.model === 'scripted' ? 'scripted' : 'openai',
      'gen_ai.request.model': call.model,
      'gen_ai.usage.input_tokens': call.input_tokens,
      'gen_ai.usage.output_tokens': call.output_tokens,
      'gen_ai.usage.cache_read.input_tokens': call.cached_tokens,
      'agent_task.turn': call.turn,
    },
    error: call.ok ? null : (call.error?.code ?? 'model_failed'),
  };
};

const toolCall = (data: unknown): CallSpan | null => {
  const { data: call } = toolSpanSchema.safeParse(data);
  if (call === undefined) return null;
  return {
    name: `execute_tool ${call.tool}`,
    kind: 'internal',
    ms: call.duration_ms,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': call.tool,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': call.call_id,
    },
    error: call.ok ? null : 'tool_failed',
  };
};

const spanReaders: Readonly<Record<string, (data: unknown) => CallSpan | null>> = {
  api_call_complete: modelCall,
  tool_end: toolCall,
};

/** The span of a model or tool call that ended; null for other entries. */
export const callSpan = (
  { type, data, at, seq }: Entry,
  { traceId, rootId, idOf }: TraceIds,
): Span | null => {
  const call = spanReaders[type]?.(JSON.parse(data)) ?? null;
  if (call === null) return null;
  const { ms, ...named } = call;
  const ids = { traceId, spanId: idOf(type, seq), parentSpanId: rootId };
  return { ...ids, ...named, startAt: at - ms, endAt: at };
};
