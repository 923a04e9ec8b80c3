import type { Assistant as AssistantName } from '../../machines/agent-context.ts';
import type { AssistantNeeds } from '../sandbox/port.ts';

/** Tokens; those that came from a cache are among the input. */
export interface TokensUsed {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
}

/** What one line of an assistant's output says, in our words. */
export type AssistantEvent =
  /** Its conversation has this id and can be gone on with. */
  | { readonly type: 'session'; readonly id: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_started'; readonly callId: string; readonly tool: string; readonly arguments: string }
  | { readonly type: 'tool_ended'; readonly callId: string; readonly ok: boolean; readonly output: string }
  /** A command was run, or could not even be started; the same one may be told of twice. */
  | { readonly type: 'command'; readonly problem: string | null }
  /** It changed a file; the path is as the assistant gives it. */
  | { readonly type: 'changed'; readonly path: string }
  /** A call of its model, so far: the same id again says it better. */
  | { readonly type: 'called'; readonly id: string; readonly used: TokensUsed }
  /** What the whole run used, or the whole session. */
  | { readonly type: 'used'; readonly since: 'run' | 'session'; readonly used: TokensUsed }
  /** What the run cost since this was said last. */
  | { readonly type: 'cost'; readonly usd: number }
  /** What the run cost, or the whole session: it covers so much input, or does not say how much. */
  | { readonly type: 'cost_so_far'; readonly usd: number; readonly inputTokens: number | null }
  | { readonly type: 'note'; readonly level: 'info' | 'warn'; readonly message: string }
  /** Its work is done; null when the last text is the result. What it used comes after it. */
  | { readonly type: 'result'; readonly text: string | null }
  | {
      readonly type: 'failed';
      readonly code: 'model_failed' | 'budget_exceeded';
      readonly message: string;
      readonly retryable: boolean;
    };

/** What an assistant is started with. */
export interface AssistantStart {
  readonly model: string | null;
  /** The session to go on with, or null for a new one. */
  readonly session: string | null;
  /** Holds the prompt; it is the standard input, too. */
  readonly promptFile: string;
  readonly taskId: string;
  readonly role: string;
  readonly moneyLeftUsd: number | null;
}

/** Looks what a session does while it is at work, until the returned function is called, which looks once more. */
export type WatchSession = (watched: {
  readonly session: string;
  /** The environment of the assistant. */
  readonly env: Readonly<Record<string, string>>;
  /** When the run began (epoch ms): what the session did before is not told. */
  readonly since: number;
  readonly onEvent: (event: AssistantEvent) => void;
}) => () => Promise<void>;

/** A program that does the work of an attempt with a loop of its own. */
export interface Assistant {
  readonly name: AssistantName;
  /** Variables that are passed on to it, beside those of every child process. */
  readonly variables: readonly string[];
  /** Whether what it cost is in its own words. */
  readonly saysCost: boolean;
  /** Whether its sessions can be gone on with. */
  readonly resumes: boolean;
  argv(start: AssistantStart): readonly [string, ...string[]];
  /** What it needs of the machine, by its environment, beside its program and its workspace. */
  needs(env: Readonly<Record<string, string>>): AssistantNeeds;
  /** What a line of its standard output says; nothing when it says nothing that we know. Pure, and never throws. */
  read(line: string): readonly AssistantEvent[];
  /** For one that says what it used only when it ends. */
  readonly watch?: WatchSession;
  /** Whether an end with exit code 0 and without a result is one, with the end of its output as the result. */
  readonly endsByExit: boolean;
}
