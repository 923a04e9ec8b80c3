import { createHash } from 'node:crypto';
import type { Spent } from '../../machines/agent/agent-context.ts';
import { nothingSpent } from '../../machines/agent/budget.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
} from '../../machines/task.ts';
import type { EventType } from '../journal/event-types.ts';
import { imageRefsOf, refusesImages, withoutImages } from '../model/images.ts';
import type { Model, ModelEvent, ModelMessage, ModelRequest, ModelUsage } from '../model/port.ts';
import { costOf, estimatedUsage, type Price } from '../model/price.ts';
import { createTextGatherer } from '../process/text-gatherer.ts';
import type { Images } from '../store/port.ts';
import { toolSpecs } from './executor.ts';
import type { Session } from './session.ts';
import type { ModelAnswer } from './turn-steps.ts';

export interface ModelCallPorts {
  readonly chooseModel: (attempt: AttemptInput) => {
    readonly model: Model;
    readonly name: string;
  };
  /** Needs no model, so that a known answer can be priced without a key. */
  readonly priceFor: (attempt: AttemptInput) => Price | undefined;
  /** True when the journal has the start of a call of the attempt without its end. */
  readonly wasCut: (attempt: Pick<AttemptInput, 'taskId' | 'attempt'>) => Promise<boolean>;
  /** Why budgets allow no further paid call, or null. */
  readonly budgetRefusal: (attempt: AttemptInput) => Promise<Failure | null>;
  readonly emit: (
    key: Pick<AttemptInput, 'taskId' | 'attempt'>,
    type: EventType,
    data: unknown,
  ) => void;
  /** Counts a call that was stopped: its agent is gone. */
  readonly addCut: (key: AttemptKey, spent: Spent) => void;
  readonly images: Pick<Images, 'find'>;
  readonly maxTokens: () => number;
  readonly now: () => number;
}

export interface CallRequest {
  readonly turn: number;
  /** Absent when the call is not a turn. */
  readonly maxTurns?: number;
  /** The step, such as `think:3`: part of the idempotency key. */
  readonly step: string;
  readonly messages: readonly ModelMessage[];
  /** Shown to people when the call is not a turn. */
  readonly purpose?: 'compaction';
}

export type CallOutcome =
  | ModelAnswer
  | { readonly type: 'failed'; readonly failure: Failure; readonly spent: Spent };

const cutFailure: Failure = {
  code: 'model_failed',
  message: 'the server died during the call; its cost is an estimate',
  facts: { interrupted: true },
  retryable: true,
};

/**
 * Counts a call that the server of before began and did not end. Null where there was none, or it
 * costs nothing.
 */
export const countCutCall = async (
  ports: Pick<ModelCallPorts, 'priceFor' | 'emit' | 'wasCut'>,
  { system, conversation }: Pick<Session, 'system' | 'conversation'>,
  attempt: AttemptInput & { readonly turns: number },
): Promise<Spent | null> => {
  if (!(await ports.wasCut(attempt))) return null;
  const usage = estimatedUsage({ system, messages: conversation.messages }, '');
  const costUsd = costOf(ports.priceFor(attempt), usage);
  if (costUsd === null || costUsd === 0) return null;
  const cost = { ...usageFields(usage, costUsd), run: attempt.options.run?.id };
  const facts = { turn: attempt.turns + 1, duration_ms: 0, ok: false, error: cutFailure };
  ports.emit(attempt, 'api_call_complete', { ...facts, ...cost });
  return { ...nothingSpent, ...usage, modelCalls: 1, costUsd };
};

const noAnswer: Failure = {
  code: 'model_failed',
  message: 'the model did not answer',
  facts: {},
  retryable: true,
};

const usageFields = (
  { inputTokens, outputTokens, cachedTokens, cacheWriteTokens }: ModelUsage,
  costUsd: number | null,
) => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
  cache_write_tokens: cacheWriteTokens || undefined,
  cost_usd: costUsd ?? undefined,
});

export const createModelCall = (ports: ModelCallPorts) => {
  const streamAnswer = async (
    model: Model,
    request: ModelRequest,
    onText: (text: string) => void,
    signal: AbortSignal,
  ) => {
    const text = createTextGatherer(onText);
    let last: ModelEvent | null = null;
    try {
      for await (const event of model.ask(request, signal)) {
        if (event.type === 'text') text.add(event.delta);
        else last = event;
      }
    } finally {
      text.end();
    }
    return last;
  };

  /** The step that each attempt asks for, and how often it did. */
  const tries = new WeakMap<Session, { readonly step: string; readonly count: number }>();
  const tryOf = (session: Session, step: string): number => {
    const last = tries.get(session);
    const count = last?.step === step ? last.count + 1 : 1;
    tries.set(session, { step, count });
    return count;
  };
  /**
   * The same when a call whose answer was lost is made again by another process. Other projects have
   * tasks with the same id, and a gateway repeats a failure under the key of the first try.
   */
  const keyOf = (session: Session, { step, messages }: CallRequest, key: string): string => {
    const said = JSON.stringify([session.system, messages, tryOf(session, step)]);
    return `${key}/${createHash('sha256').update(said).digest('base64url')}/${step}`;
  };

  /** An image that is gone from the store is left out. */
  const loadImages = async (
    { taskId }: AttemptInput,
    messages: readonly ModelMessage[],
  ): Promise<ReadonlyMap<string, string> | undefined> => {
    const digests = new Set(messages.flatMap(imageRefsOf).map(({ digest }) => digest));
    const images = new Map<string, string>();
    for (const digest of digests) {
      const found = await ports.images.find(taskId, digest);
      if (found !== null) images.set(digest, found.data);
    }
    return images.size === 0 ? undefined : images;
  };

  const callOnce = async (
    session: Session,
    attempt: AttemptInput,
    call: CallRequest,
    signal: AbortSignal,
  ): Promise<CallOutcome> => {
    const { turn, maxTurns, messages, purpose } = call;
    const images = await loadImages(attempt, messages);
    // It may have been given up while its intent was saved.
    signal.throwIfAborted();
    const { model, name } = ports.chooseModel(attempt);
    const refused = model.disclaimer === null ? await ports.budgetRefusal(attempt) : null;
    signal.throwIfAborted();
    if (refused !== null) return { type: 'failed', failure: refused, spent: nothingSpent };
    const startedAt = ports.now();
    const key = attemptKey(attempt.taskId, attempt.attempt);
    const about = { turn, model: name, purpose };
    const of = maxTurns === undefined ? {} : { max_turns: maxTurns };
    ports.emit(attempt, 'api_call_start', { ...about, ...of });
    const request: ModelRequest = {
      model: name,
      asker: {
        taskId: attempt.taskId,
        role: attempt.role,
        title: session.task.title,
        attempt: attempt.attempt,
      },
      idempotencyKey: keyOf(session, call, key),
      system: session.system,
      messages,
      images,
      tools: toolSpecs(session.profile.tools, session.mcp.tools()),
      maxTokens: ports.maxTokens(),
      wordsOnly: purpose === undefined ? undefined : true,
    };
    const noteCut = (spent: Spent): void => {
      if (signal.aborted) ports.addCut(key, spent);
    };
    const onText = (text: string) => {
      if (purpose === undefined) ports.emit(attempt, 'text_delta', { text });
    };
    const last = await streamAnswer(model, request, onText, signal);
    const finished = {
      ...about,
      duration_ms: ports.now() - startedAt,
      run: attempt.options.run?.id,
    };
    if (last?.type !== 'answered') {
      const failure = last?.type === 'failed' ? last.failure : noAnswer;
      const usage = last?.type === 'failed' ? last.usage : undefined;
      const costUsd = usage === undefined ? null : costOf(ports.priceFor(attempt), usage);
      const cost = usage === undefined ? {} : usageFields(usage, costUsd);
      ports.emit(attempt, 'api_call_complete', { ...finished, ok: false, ...cost, error: failure });
      const spent = { ...nothingSpent, ...usage, modelCalls: 1, costUsd };
      noteCut(spent);
      return { type: 'failed', failure, spent };
    }
    const costUsd = costOf(ports.priceFor(attempt), last.usage);
    const spent = usageFields(last.usage, costUsd);
    noteCut({ ...nothingSpent, ...last.usage, modelCalls: 1, costUsd });
    ports.emit(attempt, 'api_call_complete', { ...finished, ok: true, ...spent });
    ports.emit(attempt, 'usage', { turn, ...spent });
    return last;
  };

  /** A model that takes no images goes on without them, and is told so. */
  return async (
    session: Session,
    attempt: AttemptInput,
    call: CallRequest,
    signal: AbortSignal,
  ): Promise<CallOutcome> => {
    // Only before a turn: what is said meanwhile keeps the request that a provider has cached.
    if (call.purpose === undefined) await session.mcp.refresh(signal);
    const blind = { ...call, messages: withoutImages(call.messages) };
    const { steps } = session;
    if (steps.imagesRefused()) return callOnce(session, attempt, blind, signal);
    const outcome = await callOnce(session, attempt, call, signal);
    const isBlind =
      outcome.type === 'failed' &&
      refusesImages(outcome.failure) &&
      call.messages.some((message) => imageRefsOf(message).length > 0);
    if (!isBlind) return outcome;
    await steps.recordImagesRefused();
    const message = `the model takes no images, so it goes on without them: ${outcome.failure.message}`;
    ports.emit(attempt, 'log', { level: 'warn', message });
    return callOnce(session, attempt, blind, signal);
  };
};
export type ModelCall = ReturnType<typeof createModelCall>;
