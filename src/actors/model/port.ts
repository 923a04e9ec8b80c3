import type { Failure } from '../../machines/task.ts';
import type { ImageRef } from '../files/image.ts';
import type { Reasoning } from './reasoning.ts';

/** `arguments` is the JSON text as the model wrote it. */
export interface ToolCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: string;
}

export type ModelMessage =
  | { readonly role: 'user'; readonly text: string; readonly images?: readonly ImageRef[] }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly calls: readonly ToolCall[];
      readonly reasoning?: Reasoning;
    }
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly tool: string;
      readonly text: string;
      readonly ok: boolean;
      readonly images?: readonly ImageRef[];
    };

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface ModelRequest {
  readonly model: string;
  /** The scripted model selects its script by these; other models ignore them. */
  readonly asker: {
    readonly taskId: string;
    readonly role: string;
    readonly title: string;
    readonly attempt: number;
  };
  /** The same for the same call, so that a provider can avoid a second run. */
  readonly idempotencyKey: string;
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  /** The images of the messages, in base64, by their digests. */
  readonly images?: ReadonlyMap<string, string>;
  readonly tools: readonly ToolSpec[];
  readonly maxTokens: number;
  /** Forbids tool calls; the tools stay named, since the conversation holds calls of them. */
  readonly wordsOnly?: boolean;
}

/** `inputTokens` is all input; `cachedTokens` and `cacheWriteTokens` (absent: 0) are parts of it. */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens?: number;
}

/**
 * A model call streams text, then exactly one last event. It is `answered` only when the provider
 * said that the answer is whole; else it is `failed`, and the partial text does not count.
 */
export type ModelEvent =
  | { readonly type: 'text'; readonly delta: string }
  | {
      readonly type: 'answered';
      readonly text: string;
      readonly calls: readonly ToolCall[];
      /**
       * True when the provider cut the answer at its token limit; its tool calls must not be
       * executed.
       */
      readonly truncated: boolean;
      readonly usage: ModelUsage;
      /** True when the provider gave no usage and it was estimated from lengths. */
      readonly estimated?: boolean;
      readonly reasoning?: Reasoning;
    }
  /** `usage`: of a call that may be charged although it failed: as reported, or an estimate. */
  | { readonly type: 'failed'; readonly failure: Failure; readonly usage?: ModelUsage };

/**
 * A language model. `ask` never rejects, ends promptly when the signal aborts, and bounds its own
 * silence.
 */
export interface Model {
  /** `scripted`, or the provider's host. */
  readonly name: string;
  /** A note that every result of this model must carry, or null. */
  readonly disclaimer: string | null;
  ask(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** `kind` is the fact by which machines and tests tell failures of a model apart. */
export const modelFailure = (
  kind: string,
  message: string,
  retryable: boolean,
  facts: Readonly<Record<string, unknown>> = {},
): Failure => ({ code: 'model_failed', message, facts: { kind, ...facts }, retryable });

export const cancelledCall: Failure = modelFailure('cancelled', 'the call was cancelled', false);
