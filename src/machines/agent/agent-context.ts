import type { CommentAnswer, ReviewedWork } from '../review.ts';
import type {
  Failure,
  KeptMessages,
  Parking,
  Role,
  RunOptions,
  Stamped,
  TaskId,
  Usage,
} from '../task.ts';

export interface AgentLimits {
  readonly maxTurns: number;
  readonly maxTokensTotal: number | null;
  readonly maxCostUsd: number | null;
  /** The limit that `deadlineAt` comes from (ms); absent in attempts of version 2.1. */
  readonly wallMs?: number;
  /** Wall-clock limit of the attempt (epoch ms); waits for a person do not count. */
  readonly deadlineAt: number;
  /** Limit of a wait for an answer (ms); 0: none. */
  readonly answerMs: number;
  /** Used after `answerMs` without an answer; null: the attempt fails. */
  readonly defaultAnswer: string | null;
  /** Used after `answerMs` without a decision; null: the attempt fails. */
  readonly defaultDecision: 'deny' | null;
  /** Limit of identical calls in a row with the same result. */
  readonly maxRepeats: number;
  /** Limit of reminders after an answer without a tool call. */
  readonly maxNudges: number;
  readonly maxModelRetries: number;
  /** Limit of turns in a row with only malformed calls. */
  readonly maxStrikes: number;
  /** The name of the limits that park it; absent: that of the backend. */
  readonly limitedBy?: string;
  /** Size of the model's context in tokens; null where unknown. */
  readonly contextWindow: number | null;
  readonly approvals: readonly string[];
  /** At a limit of the provider: wait for its end without a slot, or fail. Absent: `park`. */
  readonly onQuota?: OnQuota;
}

export const quotaPolicies = ['park', 'fail'] as const;
export type OnQuota = (typeof quotaPolicies)[number];

/** `builtin`: our loop over a model; else an assistant program. */
export type Backend = 'builtin' | AssistantName;
export const assistantNames = ['codex', 'claude', 'acp', 'command'] as const;
export type AssistantName = (typeof assistantNames)[number];
export const isAssistantName = (name: string): name is AssistantName =>
  assistantNames.some((known) => known === name);

export interface AgentInput {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  readonly backend?: Backend;
  readonly options: RunOptions;
  readonly limits: AgentLimits;
  readonly review?: ReviewedWork;
}

export type WaitsAt = 'awaitingInput' | 'awaitingApproval' | 'awaitingDecision' | 'returning';

export type GoesOnAt = 'considering' | 'acting' | 'delegating';

export interface Resume {
  readonly at: 'thinking' | 'compacting' | 'acting' | 'delegating' | WaitsAt | null;
  readonly context: AgentContext;
}

/** `resume` is set after a restart. */
export interface AgentStart extends AgentInput {
  readonly resume?: Resume;
  readonly kept?: KeptMessages;
}

/** Work of an earlier task that is missing in the attempt's folder, and the files in conflict. */
export interface StartConflict {
  readonly taskId: TaskId;
  readonly branch: string;
  /** Empty when the conflict is not in a file. */
  readonly files: readonly string[];
}

/** Result of `prepare`. A question means that the outcome of a call is unknown. */
export interface Prepared {
  readonly question: string | null;
  readonly failure: Failure | null;
  readonly conflicts: readonly StartConflict[];
  /** Of a model call that was cut when its server died. */
  readonly cut?: Spent | null;
}

export interface ShownCall {
  readonly call_id: string;
  readonly tool: string;
  /** JSON text, cut for display. */
  readonly arguments: string;
  /** Set when this call needs approval because its tool has changed. */
  readonly change?: { readonly fingerprint: string; readonly why: string };
}

export type Thought =
  | {
      readonly kind: 'calls' | 'answer' | 'truncated';
      readonly calls: readonly ShownCall[];
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cachedTokens: number;
      readonly cacheWriteTokens?: number;
      /** Null where the price is unknown. */
      readonly costUsd: number | null;
    }
  /** `spent`: what the provider reported, or an estimate; absent in journals of version 2.1. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly spent?: Spent };

/** `spent` is the cost of the summary. */
export type Compacted =
  | { readonly kind: 'compacted'; readonly spent: Spent }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly spent: Spent };

export interface Acted {
  readonly calls: number;
  readonly finish: {
    readonly status: 'done' | 'failed';
    readonly summary: string;
    readonly artifacts: readonly string[];
    readonly answers?: readonly CommentAnswer[];
  } | null;
  readonly question: string | null;
  /** Calls in a row that equal the last one and had the same result. */
  readonly repeats: number;
  /** Set when every call was malformed. */
  readonly malformed: string | null;
}

export interface Spent {
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens?: number;
  /** True where the assistant does not tell its tokens. */
  readonly tokensUnknown?: true;
  /** Null where unknown, or not known yet. */
  readonly costUsd: number | null;
}

/** `spent` is the usage that the assistant had not reported. */
export type Delegated =
  /** The assistant waits for a person's permission. Each question has an id of its own. */
  | {
      readonly kind: 'asks';
      readonly questionId: string;
      readonly call: ShownCall;
      readonly spent: Spent;
    }
  | {
      readonly kind: 'done';
      readonly summary: string;
      readonly artifacts: readonly string[];
      readonly answers?: readonly CommentAnswer[];
      readonly spent: Spent;
    }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly spent: Spent };

export interface Reported {
  readonly type: 'assistant.reported';
  readonly spent: Spent;
}

/** The open question: for an answer in words, or for approval of the calls of the last turn. */
export interface Question {
  readonly inputId: string;
  readonly kind: 'input' | 'approval';
  readonly text: string;
  readonly calls: readonly ShownCall[];
  /** The answer at the deadline; null: the attempt fails. */
  readonly fallback: string | null;
}

/** Goes into the next turn: a person's answer, the fallback, or the output of a failed check. */
export interface TurnAnswer {
  readonly from: 'person' | 'nobody' | 'check';
  readonly text: string | null;
  readonly allowed: boolean;
}

export interface Response {
  readonly type: 'respond';
  readonly inputId: string;
  readonly text: string | null;
  readonly decision: 'allow' | 'deny' | null;
}

/** The assistant ended while it waited for a permission. */
export interface AssistantEnded {
  readonly type: 'assistant.ended';
}

/** A person says something to an agent at work, which reads it at its next turn. */
export interface Tell {
  readonly type: 'tell';
  readonly text: string;
}

export type AgentEvent = Stamped<
  { readonly type: 'DEADLINE' } | Response | Reported | AssistantEnded | Tell
>;

export interface AgentContext extends AgentInput {
  readonly backend: Backend;
  readonly usage: Usage;
  readonly calls: readonly ShownCall[];
  readonly finish: Acted['finish'];
  readonly repeats: number;
  readonly nudges: number;
  /** Answers in a row that were cut at their token limit. */
  readonly cuts: number;
  /** Turns in a row with only malformed calls; `problem` is the last problem. */
  readonly strikes: number;
  readonly problem: string | null;
  /** Tokens of the conversation by the model's last count; 0 after a compaction. */
  readonly conversationTokens: number;
  /** True when the provider refused the conversation as too long. */
  readonly overflowed: boolean;
  /** Turn of the last compaction, or 0. */
  readonly compactedFor: number;
  readonly question: Question | null;
  /** Goes to the next turn, or to the tool calls that waited for it. */
  readonly answer: TurnAnswer | null;
  /** What people said that the agent has not read; absent when there is nothing. */
  readonly unread?: readonly string[];
  /** Messages that the task kept and this agent took, counted from the first. */
  readonly heard?: number;
  /** What people said, for the present turn or run. */
  readonly told?: readonly string[];
  /** How often the agent had ended when it was told something, and went on. */
  readonly wentOn?: number;
  readonly modelTries: number;
  /** Why the last model call failed; absent after one that succeeded. */
  readonly modelFault?: string;
  /** The deadline of the attempt during a pause; else null. */
  readonly limitAt: number | null;
  /** How often a failed check returned the work. */
  readonly round: number;
  readonly resumeAt: Resume['at'];
  readonly goesOnAt: GoesOnAt | null;
  /** A person's answer about a call whose outcome is unknown. */
  readonly decision: string | null;
  /** Time left when the clock stopped (ms). */
  readonly remainingMs: number;
  /** When the clock stopped for a person (epoch ms); absent while it runs. */
  readonly askedAt?: number;
  /** How long the clock stood still for persons, up to the last answer (ms). */
  readonly waitedMs?: number;
  readonly failure: Failure | null;
  /** Set when a limit of the provider stopped the agent. */
  readonly parking?: Parking;
  /** Times in a row that a limit stopped it. */
  readonly parks?: number;
  /** Missing work of earlier tasks; absent when nothing is missing. */
  readonly conflicts?: readonly StartConflict[];
  /** Epoch ms; null during a wait without limit. */
  readonly deadlineAt: number | null;
}
