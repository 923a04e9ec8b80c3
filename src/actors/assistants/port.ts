import type { AssistantName } from '../../machines/agent-context.ts';
import type { AssistantNeeds } from '../sandbox/port.ts';

/** Input includes the cached tokens. */
export interface TokensUsed {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
}

export const noTokens: TokensUsed = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/** The meaning of one line of an assistant's output. */
export type AssistantEvent =
  /** The session can be resumed by this id. */
  | { readonly type: 'session'; readonly id: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_started'; readonly callId: string; readonly tool: string; readonly arguments: string }
  | { readonly type: 'tool_ended'; readonly callId: string; readonly ok: boolean; readonly output: string }
  /** A command ran, or could not start; one command may give two such events. */
  | { readonly type: 'command'; readonly problem: string | null }
  /** The path is as the assistant gives it. */
  | { readonly type: 'changed'; readonly path: string }
  /** Usage of one model call; a later event with the same id replaces it. */
  | { readonly type: 'called'; readonly id: string; readonly used: TokensUsed }
  /** Usage of the whole run or the whole session. */
  | { readonly type: 'used'; readonly since: 'run' | 'session'; readonly used: TokensUsed }
  /** Cost since the last such event. */
  | { readonly type: 'cost'; readonly usd: number }
  /** Cost of the run or of the session; `inputTokens` is the input that it covers, null when not given. */
  | { readonly type: 'cost_so_far'; readonly usd: number; readonly inputTokens: number | null }
  | { readonly type: 'note'; readonly level: 'info' | 'warn'; readonly message: string }
  /** Null: the last text is the result. Usage events follow. */
  | { readonly type: 'result'; readonly text: string | null }
  | {
      readonly type: 'failed';
      readonly code: 'model_failed' | 'budget_exceeded';
      readonly message: string;
      readonly retryable: boolean;
    };

export interface AssistantStart {
  readonly model: string | null;
  /** The session to resume, or null for a new one. */
  readonly session: string | null;
  /** A file with the prompt, which is also the standard input. */
  readonly promptFile: string;
  readonly taskId: string;
  readonly role: string;
  readonly moneyLeftUsd: number | null;
}

/** Watches a running session. The returned function looks once more and stops. */
export type WatchSession = (watched: {
  readonly session: string;
  /** The workspace. */
  readonly root: string;
  /** The environment of the assistant. */
  readonly env: Readonly<Record<string, string>>;
  /** Start of the run (epoch ms); earlier records of the session are skipped. */
  readonly since: number;
  readonly onEvent: (event: AssistantEvent) => void;
}) => () => Promise<void>;

/** A program that works on an attempt with an agent loop of its own. */
export interface Assistant {
  readonly name: AssistantName;
  /** Names of the variables that it gets beside those of every child process. */
  readonly variables: readonly string[];
  /** True when it reports its own cost. */
  readonly reportsCost: boolean;
  /** True when its sessions can be resumed. */
  readonly resumes: boolean;
  argv(start: AssistantStart): readonly [string, ...string[]];
  /** Files and folders that it needs beside its program and its workspace. */
  needs(env: Readonly<Record<string, string>>): AssistantNeeds;
  /** Parses a line of its standard output; unknown lines give no events. Pure; never throws. */
  read(line: string): readonly AssistantEvent[];
  /** For an assistant that prints its usage only at the end. */
  readonly watch?: WatchSession;
  /** True when exit code 0 means success, with the end of its output as the result. */
  readonly endsByExit: boolean;
}
