import type { Seat } from '../../machines/agent-selectors.ts';
import { attemptKey, type Failure } from '../../machines/task.ts';
import { costOf, type Price } from '../engine/settings.ts';
import type { EventType } from '../journal/event-types.ts';
import type { Message, Model, ModelEvent, ModelRequest, ModelUsage } from '../model/port.ts';
import { createTextGatherer } from '../process/text-gatherer.ts';
import { toolSpecs } from './executor.ts';
import type { Session } from './session.ts';
import type { ModelAnswer } from './steps.ts';

export interface ModelCallPorts {
  readonly chooseModel: (seat: Seat) => {
    readonly model: Model;
    readonly name: string;
    readonly price: Price | undefined;
  };
  readonly emit: (key: Pick<Seat, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  readonly maxTokens: () => number;
  readonly now: () => number;
}

/** One call of the model for an attempt. */
export interface CallRequest {
  readonly turn: number;
  /** The step, as `think:3`; a provider that knows keys does it once. */
  readonly step: string;
  readonly messages: readonly Message[];
  /** Told to people, when it is not the next turn. */
  readonly purpose?: 'compaction';
}

export type CallOutcome = ModelAnswer | { readonly type: 'failed'; readonly failure: Failure };

const noAnswer: Failure = { code: 'model_failed', message: 'the model did not answer', facts: {}, retryable: true };

const usageFields = ({ inputTokens, outputTokens, cachedTokens }: ModelUsage, costUsd: number | null) => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
  ...(costUsd === null ? {} : { cost_usd: costUsd }),
});

/** Asks the model and tells of it: its beginning and end, its text as it comes, and what it spent. */
export const createModelCall = (ports: ModelCallPorts) => {
  const hear = async (model: Model, request: ModelRequest, onText: (text: string) => void, signal: AbortSignal) => {
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

  return async (desk: Session, seat: Seat, asking: CallRequest, signal: AbortSignal): Promise<CallOutcome> => {
    const { turn, step, messages, purpose } = asking;
    const { model, name, price } = ports.chooseModel(seat);
    const startedAt = ports.now();
    const key = attemptKey(seat.taskId, seat.attempt);
    const about = { turn, model: name, ...(purpose === undefined ? {} : { purpose }) };
    ports.emit(seat, 'api_call_start', about);
    const request: ModelRequest = {
      model: name,
      asker: { taskId: seat.taskId, role: seat.role, title: desk.task.title, attempt: seat.attempt },
      idempotencyKey: `${key}/${step}`,
      system: desk.system,
      messages,
      tools: toolSpecs(desk.profile.tools),
      maxTokens: ports.maxTokens(),
      ...(purpose === undefined ? {} : { wordsOnly: true }),
    };
    const onText = (text: string) => {
      if (purpose === undefined) ports.emit(seat, 'text_delta', { text });
    };
    const last = await hear(model, request, onText, signal);
    const finished = { ...about, duration_ms: ports.now() - startedAt };
    if (last?.type !== 'answered') {
      const failure = last?.type === 'failed' ? last.failure : noAnswer;
      ports.emit(seat, 'api_call_complete', { ...finished, ok: false, error: failure });
      return { type: 'failed', failure };
    }
    const spent = usageFields(last.usage, costOf(price, last.usage));
    ports.emit(seat, 'api_call_complete', { ...finished, ok: true, ...spent });
    ports.emit(seat, 'usage', { turn, ...spent });
    return last;
  };
};
export type ModelCall = ReturnType<typeof createModelCall>;
