import type { Failure, Role, RunOptions, Stamped, TaskId, Usage } from './task.ts';

export interface AgentLimits {
  readonly maxTurns: number;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  /** Epoch ms: the wall limit of the attempt as an absolute time; waiting for a person does not count. */
  readonly deadlineAt: number;
  /** How long a question to a person may stay unanswered (ms); 0: without limit. */
  readonly answerMs: number;
  /** What counts as the answer to a question when nobody answers in time; null: the attempt fails. */
  readonly defaultAnswer: string | null;
  /** What counts for calls that need leave when nobody answers in time; null: the attempt fails. */
  readonly defaultDecision: 'deny' | null;
  /** How often the same call with the same result is tolerated. */
  readonly maxRepeats: number;
  /** How often an answer without a tool call is asked to go on. */
  readonly maxNudges: number;
  /** How often a call of the model that failed in a way that may pass is made again. */
  readonly maxModelRetries: number;
  /** How many turns in a row may hold nothing but malformed calls. */
  readonly maxStrikes: number;
  /** Tokens that the model reads at once, or null where that is not known. */
  readonly contextWindow: number | null;
  /** Tools whose calls a person must allow first. */
  readonly approvals: readonly string[];
}

/** Who does the work of an attempt: our loop over a model, or an assistant program with a loop of its own. */
export type Backend = 'builtin' | Assistant;
export type Assistant = 'codex' | 'claude' | 'command';

export interface AgentInput {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  /** Absent means built in. */
  readonly backend?: Backend;
  readonly options: RunOptions;
  readonly limits: AgentLimits;
}

/** Where an attempt waits for a person, or for a slot after that: its slot is lent. */
export type WaitsAt = 'awaitingInput' | 'awaitingApproval' | 'awaitingDecision' | 'returning';

/** What follows the answer of a person. */
export type GoesOnAt = 'considering' | 'acting' | 'delegating';

/** Where an attempt goes on in another process, and with what it knew there. */
export interface Resume {
  readonly at: 'thinking' | 'compacting' | 'acting' | 'delegating' | WaitsAt | null;
  readonly context: AgentContext;
}

/** What an agent begins with; `resume` when an earlier process had begun already. */
export interface AgentStart extends AgentInput {
  readonly resume?: Resume;
}

/** Work of an earlier task that could not be put into the folder of an attempt, and the files in the way. */
export interface StartConflict {
  readonly taskId: TaskId;
  readonly branch: string;
  /** Empty when it was not a file that was in the way. */
  readonly files: readonly string[];
}

/** What came of setting the table: a call of which nobody knows whether it was made, and what is to be done about it. */
export interface Prepared {
  /** To a person, or null. */
  readonly question: string | null;
  readonly failure: Failure | null;
  readonly conflicts: readonly StartConflict[];
}

/** A tool call as people are shown it. */
export interface ShownCall {
  readonly call_id: string;
  readonly tool: string;
  /** JSON text, cut to what people can read. */
  readonly arguments: string;
}

/** What one model call brought. */
export type Thought =
  | {
      readonly kind: 'calls' | 'answer' | 'truncated';
      /** The tool calls that it asks for, in order. */
      readonly calls: readonly ShownCall[];
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cachedTokens: number;
      /** Null where the price of the model is not known. */
      readonly costUsd: number | null;
    }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** What came of replacing the older part of the conversation by a summary; `spent` is what the summary cost. */
export type Compacted =
  | { readonly kind: 'compacted'; readonly spent: Spent }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly spent: Spent };

/** What the tool calls of one turn brought. */
export interface Acted {
  readonly calls: number;
  readonly finish: {
    readonly status: 'done' | 'failed';
    readonly summary: string;
    readonly artifacts: readonly string[];
  } | null;
  /** What the agent asks a person, or null. */
  readonly question: string | null;
  /** How often the last call has now been made in a row with the same result. */
  readonly repeats: number;
  /** What was wrong with its last call when none of its calls was well-formed, else null. */
  readonly malformed: string | null;
}

/** What an assistant, or a summary, spent since it was last counted. */
export interface Spent {
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Null where it is not known, or not yet. */
  readonly costUsd: number | null;
}

/** How the work of an assistant ended; `spent` is what it had not reported. */
export type Delegated =
  | { readonly kind: 'done'; readonly summary: string; readonly artifacts: readonly string[]; readonly spent: Spent }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly spent: Spent };

/** An assistant at work says what it spent. */
export interface Reported {
  readonly type: 'assistant.reported';
  readonly spent: Spent;
}

/** What an attempt waits for a person for: an answer in words, or leave to make the calls of its last turn. */
export interface Question {
  readonly inputId: string;
  readonly kind: 'input' | 'approval';
  readonly text: string;
  readonly calls: readonly ShownCall[];
  /** What counts as the answer when nobody gives one in time; null: the attempt fails. */
  readonly fallback: string | null;
}

/** What is told to the model with its next turn: a person's answer, what counts as one, or what a check of its work said. */
export interface Answer {
  readonly from: 'person' | 'nobody' | 'check';
  readonly text: string | null;
  readonly allowed: boolean;
}

/** A person answers the question of a live attempt (CONTRACT 3, `respond`). */
export interface Response {
  readonly type: 'respond';
  readonly inputId: string;
  readonly text: string | null;
  readonly decision: 'allow' | 'deny' | null;
}

export type AgentEvent = Stamped<{ readonly type: 'DEADLINE' } | Response | Reported>;

export interface AgentContext extends AgentInput {
  readonly backend: Backend;
  readonly usage: Usage;
  readonly calls: readonly ShownCall[];
  readonly finish: Acted['finish'];
  readonly repeats: number;
  readonly nudges: number;
  /** How many answers in a row were cut at their limit of tokens. */
  readonly cuts: number;
  /** How many turns in a row held nothing but malformed calls, and what was wrong with the last. */
  readonly strikes: number;
  readonly problem: string | null;
  /** Tokens of the conversation, as the model counted them with its last answer; 0 when it has become another since. */
  readonly conversationTokens: number;
  /** Whether the provider said that the conversation is too long. */
  readonly overflowed: boolean;
  /** The last turn for which the conversation was compacted, or 0. */
  readonly compactedFor: number;
  readonly question: Question | null;
  /** Told to the model with its next turn, or to the tools that waited for it. */
  readonly answer: Answer | null;
  /** How often the call of this turn has failed. */
  readonly modelTries: number;
  /** The limit of time behind a pause that ends earlier, or null. */
  readonly limitAt: number | null;
  /** How often its finished work was sent back to it. */
  readonly round: number;
  /** Where it goes on when the table is set again, after a restart. */
  readonly resumeAt: Resume['at'];
  /** Where it goes on when it has its slot again, after a person answered. */
  readonly goesOnAt: GoesOnAt | null;
  /** What a person says about a call that the end of a server left unclear. */
  readonly decision: string | null;
  /** What was left of the attempt's time when the question was asked (ms). */
  readonly remainingMs: number;
  readonly failure: Failure | null;
  /** Work that it builds on and does not have; absent when it has all. */
  readonly conflicts?: readonly StartConflict[] | undefined;
  /** Epoch ms; null while it waits for a person without limit. */
  readonly deadlineAt: number | null;
}
