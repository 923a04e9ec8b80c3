import { messageOf } from '../message-of.ts';
import { type AttemptInput, failureOf, type Usage } from '../task.ts';
import type {
  Acted,
  AgentContext,
  Backend,
  Compacted,
  Delegated,
  Prepared,
  Reported,
  Response,
  Resume,
  ShownCall,
  Spent,
  Tell,
  Thought,
  TurnAnswer,
} from './agent-context.ts';
import { needsApproval } from './agent-rules.ts';

export type Nudge = 'silent' | 'cut' | null;
/** `answer`: new since the last turn. `told`: what people said meanwhile. */
export type ThinkInput = AttemptInput & {
  readonly turn: number;
  readonly maxTurns: number;
  readonly nudge: Nudge;
  readonly answer: TurnAnswer | null;
  readonly told: readonly string[];
};
/** `turn`: the next one. */
export type CompactInput = AttemptInput & {
  readonly turn: number;
  readonly contextWindow: number | null;
};
/** Tools that a person denied; `why` goes to the model. */
export type Denial = { readonly tools: readonly string[]; readonly why: string };
/** `decision`: a person's words about a call whose outcome is unknown. */
export type ActInput = AttemptInput & {
  readonly turn: number;
  readonly denied: Denial | null;
  /** The changed tools that a person allowed, by name: their fingerprints. */
  readonly allowed: Readonly<Record<string, string>>;
  readonly decision: string | null;
};
/** `turns`: taken so far. `resumeAt`: null in a new attempt. */
export type PrepareInput = AttemptInput & {
  readonly backend: Backend;
  readonly round: number;
  readonly turns: number;
  readonly resumeAt: Resume['at'];
};
/**
 * `round`: times that the work was returned or a person had more to say; `answer`: why, or the answer
 * to a request for permission; `told`: what people said; `decision`: a person's words about an
 * interrupted run.
 */
export type DelegateInput = AttemptInput & {
  readonly backend: Backend;
  readonly round: number;
  readonly answer: TurnAnswer | null;
  readonly told: readonly string[];
  readonly decision: string | null;
  readonly usage: Usage;
  readonly moneyLeftUsd: number | null;
  readonly approvals: readonly string[];
  /** The call that `answer` is about. */
  readonly asked: ShownCall | null;
};

export const hasTime = (
  { tags, context }: { tags: ReadonlySet<string>; context: AgentContext },
  at: number,
): boolean => !tags.has('ended') && (context.deadlineAt === null || at < context.deadlineAt);

export const seconds = (ms: number): number => Math.round(ms / 1_000);

export const attemptInput = ({
  context: { taskId, attempt, role, options, review },
}: {
  context: AgentContext;
}): AttemptInput => ({
  taskId,
  attempt,
  role,
  options,
  review,
});
export const actorFailure = ({ event }: { event: { readonly error: unknown } }) => ({
  failure: failureOf('internal', messageOf(event.error)),
});
/** Git's message names what a person can mend. */
export const prepareFailure = ({ event }: { event: { readonly error: unknown } }) => ({
  failure:
    event.error instanceof Error && event.error.name === 'GitError'
      ? failureOf('tool_failed', `its folder could not be prepared: ${event.error.message}`)
      : failureOf('internal', messageOf(event.error)),
});
export const toolsFailure = ({ event }: { event: { readonly error: unknown } }) => ({
  failure: failureOf('tool_failed', `the tools could not be run: ${messageOf(event.error)}`),
});
export const prepared = ({ event }: { event: { readonly output: Prepared } }) => ({
  prepared: event.output,
});
/** Null in events that do not tell. */
export const conflictsOfStart = ({
  event,
}: {
  event: { readonly type: string; readonly output?: unknown };
}) => ({
  conflicts:
    event.type === 'xstate.done.actor.prepare'
      ? ((event.output as Prepared).conflicts ?? [])
      : null,
});
/** Null in events that do not tell. */
export const cutCall = ({
  event,
}: {
  event: { readonly type: string; readonly output?: unknown };
}) => ({
  spent:
    event.type === 'xstate.done.actor.prepare' ? ((event.output as Prepared).cut ?? null) : null,
});
export const thought = ({ event }: { event: { readonly output: Thought } }) => ({
  thought: event.output,
});
export const nudge = ({ context: { cuts, nudges } }: { context: AgentContext }): Nudge => {
  if (cuts > 0) return 'cut';
  return nudges > 0 ? 'silent' : null;
};
type MayFail = { readonly event: { readonly output: Thought | Compacted | Delegated } };
export const fault = ({ event: { output } }: MayFail) => ({
  failure: output.kind === 'failed' ? output.failure : null,
});
/** What a failed call cost. */
export const spentOnFailure = ({ event: { output } }: MayFail): { spent: Spent | null } => ({
  spent: output.kind === 'failed' ? (output.spent ?? null) : null,
});
/** `at`: where the attempt goes on when the limit is over. */
export const parksAt =
  (at: Resume['at']) =>
  ({ event }: MayFail) => ({ ...fault({ event }), at });
export const compacted = ({ event }: { event: { readonly output: Compacted } }) => ({
  compacted: event.output,
});
export const acted = ({ event }: { event: { readonly output: Acted } }) => ({
  acted: event.output,
});
export const denial = ({
  context: { answer, calls, limits },
}: {
  context: AgentContext;
}): Denial | null => {
  if (answer === null || answer.allowed) return null;
  const said = answer.text === null ? '' : `: ${answer.text}`;
  const why =
    answer.from === 'nobody'
      ? `nobody allowed this call within ${seconds(limits.answerMs)} s`
      : `a person did not allow this call${said}`;
  const asked = calls.filter((call) => needsApproval(call, limits));
  return { tools: [...limits.approvals, ...asked.map(({ tool }) => tool)], why };
};
export const allowedChanges = ({
  context: { answer, calls },
}: {
  context: AgentContext;
}): Readonly<Record<string, string>> =>
  answer?.allowed === true
    ? Object.fromEntries(
        calls.flatMap(({ tool, change }) =>
          change === undefined ? [] : [[tool, change.fingerprint]],
        ),
      )
    : {};
export const delegated = ({ event }: { event: { readonly output: Delegated } }) => ({
  delegated: event.output,
});
export const reported = ({ event }: { event: Reported }) => ({ spent: event.spent });
/** Each has its own run of an assistant. */
export const roundOf = ({ round, wentOn = 0 }: AgentContext): number => round + wentOn;
export const delegateInput = ({ context }: { context: AgentContext }): DelegateInput => ({
  ...attemptInput({ context }),
  backend: context.backend,
  round: roundOf(context),
  answer: context.answer,
  told: context.told ?? [],
  decision: context.decision,
  approvals: context.limits.approvals,
  asked: context.answer === null ? null : (context.calls[0] ?? null),
  usage: context.usage,
  moneyLeftUsd:
    context.limits.maxCostUsd === null
      ? null
      : context.limits.maxCostUsd - (context.usage.cost_usd ?? 0),
});
/** The saved state, or its successor when a person is asked or has answered. */
export const preparesFor = ({
  context: { resumeAt, goesOnAt },
}: {
  context: AgentContext;
}): Resume['at'] => {
  if (resumeAt === 'awaitingDecision') return 'awaitingApproval';
  if (resumeAt !== 'returning') return resumeAt;
  return goesOnAt === 'considering' ? 'awaitingInput' : 'awaitingApproval';
};
export const tell = ({ event }: { event: Tell }) => ({ tell: event });
export const response = ({ event }: { event: Response }) => ({ response: event });
