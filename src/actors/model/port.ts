import type { Failure } from '../../machines/task.ts';
import type { Reasoning } from './reasoning.ts';

/** One call that the model asks for; `arguments` is the JSON text as the model wrote it. */
export interface ToolCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: string;
}

/** The conversation, in one form for every provider; codecs translate it. Append-only. */
export type Message =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly calls: readonly ToolCall[];
      readonly reasoning?: Reasoning | undefined;
    }
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly tool: string;
      readonly text: string;
      readonly ok: boolean;
    };

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments object. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface ModelRequest {
  readonly model: string;
  /** The task and role that ask; the scripted model chooses its script by them, others ignore them. */
  readonly asker: { readonly taskId: string; readonly role: string; readonly title: string; readonly attempt: number };
  /** The same for the same call, so that a provider which knows it does not do it twice. */
  readonly idempotencyKey: string;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  readonly maxTokens: number;
  /** The answer is to be words: the tools are named, since the conversation holds calls of them, but none may be called. */
  readonly wordsOnly?: boolean;
}

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
}

/**
 * What a model call streams: text as it comes, then exactly one last event. An answer is `answered` only when the
 * provider said that it is whole; everything else is `failed`, with a reason, and its partial text counts for nothing.
 */
export type ModelEvent =
  | { readonly type: 'text'; readonly delta: string }
  | {
      readonly type: 'answered';
      readonly text: string;
      readonly calls: readonly ToolCall[];
      /** True when the provider cut the answer at its token limit; its tool calls must not be executed. */
      readonly truncated: boolean;
      readonly usage: ModelUsage;
      /** The provider gave no usage: it was counted by the length of what was said. */
      readonly estimated?: boolean;
      /** What the model thought, where its provider wants it back. */
      readonly reasoning?: Reasoning | undefined;
    }
  | { readonly type: 'failed'; readonly failure: Failure };

/** A language model. `ask` never rejects, ends promptly when the signal aborts, and bounds its own silence. */
export interface Model {
  /** For people: `scripted`, or the provider's host. */
  readonly name: string;
  /** A note that every result of this model must carry, or null. */
  readonly disclaimer: string | null;
  ask(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}
