import type {
  Acted,
  AgentContext,
  Answer,
  Backend,
  Compacted,
  Delegated,
  Prepared,
  Reported,
  Response,
  Resume,
  Thought,
} from './agent-context.ts';
import type { Failure, Role, RunOptions, TaskId, Usage } from './task.ts';

/** What the agent chart gives to its slots, and how it reads its events into the params of guards and actions. */

export type Seat = {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  readonly options: RunOptions;
};
/** What was wrong with the last answer, if anything: it called nothing, or it was cut at its limit of tokens. */
export type Nudge = 'silent' | 'cut' | null;
/** A turn of the model; `answer` is what was said to it since the last turn. */
export type ThinkInput = Seat & { readonly turn: number; readonly nudge: Nudge; readonly answer: Answer | null };
/** Before which turn the conversation is made shorter, and what of it the model can read at once. */
export type CompactInput = Seat & { readonly turn: number; readonly contextWindow: number | null };
/** Calls that a person did not allow, with what the model is told. */
export type Denial = { readonly tools: readonly string[]; readonly why: string };
/** `decision` is what a person says of a call that the end of a server left unclear. */
export type ActInput = Seat & {
  readonly turn: number;
  readonly denied: Denial | null;
  readonly decision: string | null;
};
/** How many turns were taken, and where the attempt goes on; null when it begins. */
export type PrepareInput = Seat & {
  readonly backend: Backend;
  readonly round: number;
  readonly turns: number;
  readonly resumeAt: Resume['at'];
};
/** `round` counts how often work was sent back; `answer` says why, `decision` what a person says of a run cut short. */
export type DelegateInput = Seat & {
  readonly backend: Backend;
  readonly round: number;
  readonly answer: Answer | null;
  readonly decision: string | null;
  /** What was counted of the attempt so far. */
  readonly usage: Usage;
  /** What of the limit of cost is left, or null when there is none. */
  readonly moneyLeftUsd: number | null;
};

/** Whether an agent is alive and has not come to the end of its time. */
export const hasTime = ({ tags, context }: { tags: ReadonlySet<string>; context: AgentContext }, at: number): boolean =>
  !tags.has('ended') && (context.deadlineAt === null || at < context.deadlineAt);

export const seconds = (ms: number): number => Math.round(ms / 1_000);

export const because = (code: Failure['code'], message: string, facts = {}): Failure => ({
  code,
  message,
  facts,
  retryable: false,
});
const words = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);

export const seat = ({ context: { taskId, attempt, role, options } }: { context: AgentContext }): Seat => ({
  taskId,
  attempt,
  role,
  options,
});
export const broken = ({ event }: { event: { readonly error: unknown } }) => ({
  failure: because('internal', words(event.error)),
});
export const toolsBroken = ({ event }: { event: { readonly error: unknown } }) => ({
  failure: because('tool_failed', `the tools could not be run: ${words(event.error)}`),
});
export const prepared = ({ event }: { event: { readonly output: Prepared } }) => ({ prepared: event.output });
/** Work that the folder of an attempt does not have; null when that is not known yet. */
export const foundConflicts = ({ event }: { event: { readonly type: string; readonly output?: unknown } }) => ({
  conflicts: event.type === 'xstate.done.actor.prepare' ? ((event.output as Prepared).conflicts ?? []) : null,
});
export const thought = ({ event }: { event: { readonly output: Thought } }) => ({ thought: event.output });
export const nudge = ({ context: { cuts, nudges } }: { context: AgentContext }): Nudge => {
  if (cuts > 0) return 'cut';
  return nudges > 0 ? 'silent' : null;
};
/** Why a call of the model failed, or null when it did not. */
export const fault = ({ event: { output } }: { event: { readonly output: Thought | Compacted } }) => ({
  failure: output.kind === 'failed' ? output.failure : null,
});
export const compacted = ({ event }: { event: { readonly output: Compacted } }) => ({ compacted: event.output });
export const acted = ({ event }: { event: { readonly output: Acted } }) => ({ acted: event.output });
export const denial = ({ context: { answer, limits } }: { context: AgentContext }): Denial | null => {
  if (answer === null || answer.allowed) return null;
  const said = answer.text === null ? '' : `: ${answer.text}`;
  const why =
    answer.from === 'nobody'
      ? `nobody allowed this call within ${seconds(limits.answerMs)} s`
      : `a person did not allow this call${said}`;
  return { tools: limits.approvals, why };
};
export const delegated = ({ event }: { event: { readonly output: Delegated } }) => ({ delegated: event.output });
export const reported = ({ event }: { event: Reported }) => ({ spent: event.spent });
export const order = ({ context }: { context: AgentContext }): DelegateInput => ({
  ...seat({ context }),
  backend: context.backend,
  round: context.round,
  answer: context.answer,
  decision: context.decision,
  usage: context.usage,
  moneyLeftUsd: context.limits.maxCostUsd === null ? null : context.limits.maxCostUsd - (context.usage.cost_usd ?? 0),
});
/** How the table is set: as it was left, or, for one that was asked about its calls or answered, as for what follows. */
export const tableAt = ({ context: { resumeAt, goesOnAt } }: { context: AgentContext }): Resume['at'] => {
  if (resumeAt === 'awaitingDecision') return 'awaitingApproval';
  if (resumeAt !== 'returning') return resumeAt;
  return goesOnAt === 'considering' ? 'awaitingInput' : 'awaitingApproval';
};
export const response = ({ event }: { event: Response }) => ({ response: event });
