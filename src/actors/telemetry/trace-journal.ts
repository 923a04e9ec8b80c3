import { z } from 'zod';
import type { Journal } from '../journal/journal.ts';
import type { Entry } from '../store/port.ts';
import {
  createSpanExporter,
  type Span,
  type SpanExporterOptions,
  type TraceIds,
  traceIds,
} from './export-spans.ts';

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
  cache_write_tokens: z.number().optional(),
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
      'gen_ai.usage.cache_creation.input_tokens': call.cache_write_tokens,
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
const callSpan = (
  { type, data, at, seq }: Entry,
  { traceId, rootId, idOf }: TraceIds,
): Span | null => {
  const call = spanReaders[type]?.(JSON.parse(data)) ?? null;
  if (call === null) return null;
  const { ms, ...named } = call;
  const ids = { traceId, spanId: idOf(type, seq), parentSpanId: rootId };
  return { ...ids, ...named, startAt: at - ms, endAt: at };
};

const stateValue = z.union([z.string(), z.record(z.string(), z.unknown())]);
const snapshotSchema = z.looseObject({
  machine: z.string(),
  value: stateValue,
  task: z.looseObject({
    status: z.string(),
    role: z.string().optional(),
    started_at: z.string().optional(),
    error: z.looseObject({ code: z.string() }).optional(),
    usage: z.looseObject({ input_tokens: z.number(), output_tokens: z.number() }),
  }),
});
type Shown = z.infer<typeof snapshotSchema>;

/** Steps by the state of the chart; the other states are made of calls, or take no time. */
const stepsOfTask: Readonly<Record<string, string>> = {
  claiming: 'claim',
  verifying: 'verify',
  recording: 'record',
  merging: 'merge',
  closing: 'close',
  failing: 'release',
  cancelling: 'release',
  standingDown: 'release',
  yielding: 'release',
  telling: 'wait_for_tracker',
};
const stepsOfAgent: Readonly<Record<string, string>> = {
  preparing: 'prepare',
  delegating: 'delegate',
  pausing: 'pause',
  awaitingInput: 'wait_for_person',
  awaitingApproval: 'wait_for_person',
  awaitingDecision: 'wait_for_person',
};

interface OpenStep {
  readonly name: string;
  readonly at: number;
  readonly seq: number;
}
interface OpenAttempt {
  readonly attempt: number;
  readonly ids: TraceIds;
  readonly startAt: number;
  step: OpenStep | null;
}

const attemptsAtMost = 10_000;

const spanNameOf = ({ machine, value }: Shown): string | null => {
  const inside = typeof value === 'string' ? value : value['started'];
  const state = typeof inside === 'object' && inside !== null ? Object.keys(inside)[0] : inside;
  const steps = machine === 'agent' ? stepsOfAgent : stepsOfTask;
  return steps[String(state)] ?? null;
};

const endStep = ({ ids, step }: OpenAttempt, endAt: number): readonly Span[] => {
  if (step === null) return [];
  const { name, at: startAt, seq } = step;
  const own = { spanId: ids.idOf('step', seq), parentSpanId: ids.rootId };
  const { traceId } = ids;
  return [{ traceId, ...own, name, startAt, endAt, kind: 'internal', attributes: {}, error: null }];
};

const attemptSpan = (
  { ids, startAt, attempt }: OpenAttempt,
  { taskId, at }: Entry,
  { task: { status, role, error, usage } }: Shown,
): Span => ({
  traceId: ids.traceId,
  spanId: ids.rootId,
  parentSpanId: null,
  name: `invoke_agent ${role ?? 'unknown'}`,
  kind: 'internal',
  startAt,
  endAt: at,
  attributes: {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': role,
    'gen_ai.conversation.id': `${taskId}#${attempt}`,
    'gen_ai.usage.input_tokens': usage.input_tokens,
    'gen_ai.usage.output_tokens': usage.output_tokens,
    'agent_task.id': taskId,
    'agent_task.attempt': attempt,
    'agent_task.status': status,
  },
  error: status === 'complete' || status === 'cancelled' ? null : (error?.code ?? 'stopped'),
});

/**
 * Makes spans of journal entries: a trace for each attempt, with a span for each step and call.
 * A step that began before this process has no span.
 */
const createAttemptSpans = (project: string) => {
  const open = new Map<string, OpenAttempt>();

  const attemptOf = ({ taskId, attempt, at }: Entry, { task }: Shown): OpenAttempt => {
    const known = open.get(taskId);
    if (known?.attempt === attempt) return known;
    const startAt = task.started_at === undefined ? at : Date.parse(task.started_at);
    const begun = { attempt, ids: traceIds(project, taskId, attempt), startAt, step: null };
    const [oldest] = open.keys();
    if (open.size >= attemptsAtMost && oldest !== undefined) open.delete(oldest);
    open.set(taskId, begun);
    return begun;
  };

  const spansOfSnapshot = (entry: Entry): readonly Span[] => {
    const { data: shown } = snapshotSchema.safeParse(JSON.parse(entry.data));
    if (shown === undefined || shown.machine === 'tracker') return [];
    const { taskId, at, seq } = entry;
    const isLive = shown.task.status === 'started';
    const attempt = isLive ? attemptOf(entry, shown) : open.get(taskId);
    if (attempt?.attempt !== entry.attempt) return [];
    const name = isLive ? spanNameOf(shown) : null;
    if (isLive && attempt.step?.name === name) return [];
    const ended = endStep(attempt, at);
    attempt.step = name === null ? null : { name, at, seq };
    if (isLive) return ended;
    open.delete(taskId);
    return [...ended, attemptSpan(attempt, entry, shown)];
  };

  return (entry: Entry): readonly Span[] => {
    if (entry.attempt === 0) return [];
    if (entry.type === 'snapshot') return spansOfSnapshot(entry);
    const span = callSpan(entry, traceIds(project, entry.taskId, entry.attempt));
    return span === null ? [] : [span];
  };
};

export interface TraceOptions extends SpanExporterOptions {
  readonly journal: Pick<Journal, 'onCommit'>;
  /** Tells equal task ids of two projects apart. */
  readonly project: string;
}

/** Sends a trace of each attempt, made of what the journal committed. */
export const traceJournal = (options: TraceOptions): { stop(): Promise<void> } => {
  const exporter = createSpanExporter(options);
  const spansOf = createAttemptSpans(options.project);
  const leave = options.journal.onCommit((entries) => exporter.add(entries.flatMap(spansOf)));
  return {
    stop: async () => {
      leave();
      await exporter.stop();
    },
  };
};
