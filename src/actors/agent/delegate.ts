import type { AssistantName, Backend, Delegated, Prepared } from '../../machines/agent-context.ts';
import type { DelegateInput, PrepareInput } from '../../machines/agent-selectors.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  noUsage,
  type Role,
} from '../../machines/task.ts';
import type { Assistant, AssistantEvent } from '../assistants/port.ts';
import { type AssistantRun, type RunEnd, runAssistant } from '../assistants/run-assistant.ts';
import type { Relay } from '../mcp/relay.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { firstAssistantPrompt, promptForRun } from './assistant-prompt.ts';
import { observeRun, type RunObserverPorts, untoldTokens } from './assistant-run.ts';
import { interruptedFailure, type OnInterrupted } from './interrupted-calls.ts';
import {
  type BegunWork,
  type EndedRun,
  type LiveRuns,
  type RunHold,
  shownArguments,
} from './live-runs.ts';
import { callNeedsApproval } from './needs-approval.ts';
import {
  type AttemptPorts,
  folderWaitLog,
  type OpenedAttempt,
  openAttempt,
} from './open-attempt.ts';
import { answersIn } from './review-text.ts';
import type { RoleProfile } from './roles.ts';
import type { BegunRun, RunSteps } from './run-steps.ts';

export interface AssistantPorts {
  readonly find: (name: AssistantName) => Assistant;
  /** Null leaves the choice to the assistant. */
  readonly modelFor: (attempt: AttemptInput) => string | null;
  readonly environmentOf: (
    attempt: Pick<AttemptInput, 'taskId' | 'attempt'>,
    assistant: Assistant,
  ) => Readonly<Record<string, string>>;
  readonly sandboxFor: (assistant: Assistant, env: Readonly<Record<string, string>>) => Sandbox;
  /** The user's MCP servers, which end with the run; null: the role has none. */
  readonly openServers: (
    attempt: AttemptInput,
    workspace: Pick<OpenedAttempt['workspace'], 'root' | 'readable' | 'git'>,
    signal: AbortSignal,
  ) => Promise<Relay | null>;
  /** An assistant that is silent for longer (ms) is ended. */
  readonly silentMs: () => number;
}

export interface DelegationPorts {
  readonly attempt: AttemptPorts;
  readonly assistant: AssistantPorts;
  readonly run: RunObserverPorts;
  readonly profileOf: (role: Role) => RoleProfile;
  readonly endLeftovers: (taskId: AttemptInput['taskId'], attempt: number) => Promise<void>;
  readonly onInterrupted: () => OnInterrupted;
  readonly live: LiveRuns;
  /** An attempt is over only after its work has ended. */
  readonly track: (key: AttemptKey, work: Promise<unknown>) => Promise<unknown>;
}

/** The actors `prepare` and `delegate` of the agent machine, for attempts of an assistant. */
export interface Delegation {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  delegate(input: DelegateInput, signal: AbortSignal): Promise<Delegated>;
}

const sessionOf = (steps: RunSteps, round: number): string | null => {
  for (let at = round; at >= 0; at -= 1) {
    const session = steps.run(at)?.session ?? null;
    if (session !== null) return session;
  }
  return null;
};

/**
 * Applies the policy for a run whose progress is unknown; a run that was stopped cleanly goes on.
 */
const prepareInterruptedRun = (
  { label: name, resumes }: Assistant,
  begun: BegunRun | null,
  policy: OnInterrupted,
): Omit<Prepared, 'conflicts'> => {
  const isClear =
    begun === null || (begun.end !== null && (begun.end.delegated !== null || resumes));
  if (isClear || policy === 'repeat') return { question: null, failure: null };
  if (policy === 'fail') {
    const facts = { interrupted: true, assistant: name };
    return { question: null, failure: { ...interruptedFailure, facts } };
  }
  const again =
    begun.session === null
      ? 'to let it begin again'
      : `to let it go on with its session ${begun.session}`;
  const question = `The server stopped while ${name} was working. Its progress is unknown. Answer 'repeat' ${again}, or tell it what else to do.`;
  return { question, failure: null };
};

/** An assistant answers the comments of a review in its last message. */
const withAnswers = (delegated: EndedRun, { review }: DelegateInput): EndedRun =>
  delegated.kind === 'done' && review !== undefined
    ? { ...delegated, answers: answersIn(delegated.summary, review.comments) }
    : delegated;

const assistantOf = ({ find }: DelegationPorts['assistant'], backend: Backend): Assistant => {
  if (backend === 'builtin') throw new Error('the built-in backend delegates to no assistant');
  return find(backend);
};

/** After a limit the same run goes on. */
const isUsageLimit = (delegated: Delegated): boolean =>
  delegated.kind === 'failed' && delegated.failure.facts['kind'] === 'usage_limit';

/**
 * A person decides on calls that need approval; others are allowed. A decision about a call of an
 * assistant that has ended counts once for the same call of its successor.
 */
const permissionFor = (
  { approvals, asked, answer }: DelegateInput,
  hold: RunHold,
): Pick<AssistantRun, 'askPermission' | 'mustAsk'> => {
  let known = answer === null || answer.from === 'check' ? null : asked;
  return {
    mustAsk: (tool) => callNeedsApproval(tool, approvals),
    askPermission: async (call) => {
      if (!callNeedsApproval(call.tool, approvals)) return true;
      const isKnown = known?.tool === call.tool && known.arguments === shownArguments(call);
      if (!isKnown) return hold.askPermission(call);
      known = null;
      return answer?.allowed === true;
    },
  };
};

export const createDelegation = (ports: DelegationPorts): Delegation => {
  const { emit } = ports.run;
  const assistantFor = (backend: Backend): Assistant => assistantOf(ports.assistant, backend);

  const beginRun = (input: DelegateInput, opened: OpenedAttempt, hold: RunHold): BegunWork => {
    const { taskId, role, round, answer, told, decision, moneyLeftUsd } = input;
    const assistant = assistantFor(input.backend);
    const { workspace, steps, first } = opened;
    const begun = steps.run(round);
    let session = assistant.resumes ? sessionOf(steps, round) : null;
    const promptWhen = (resumes: boolean): string =>
      promptForRun({
        first: firstAssistantPrompt(ports.profileOf(role), first),
        resumes,
        wasInterrupted: begun !== null,
        answer,
        told,
        decision,
      });
    const { root, readable, git } = workspace;
    const model = ports.assistant.modelFor(input);
    const before = session === null ? noUsage : input.usage;
    const observed = { attempt: input, round, root, assistant, model, before };
    const observer = observeRun(ports.run, { ...observed, isWaiting: hold.isWaiting });
    let sessionKept = Promise.resolve();
    const onEvent = (event: AssistantEvent): void => {
      observer.onEvent(event);
      if (event.type !== 'session' || !assistant.resumes || event.id === session) return;
      session = event.id;
      sessionKept = steps.beginRun(round, session);
      sessionKept.catch(() => {});
    };

    const start = { model, session, taskId, role, moneyLeftUsd };
    const env = ports.assistant.environmentOf(input, assistant);
    const silentMs = ports.assistant.silentMs();
    const permission = permissionFor(input, hold);
    const run = async (): Promise<RunEnd> => {
      await steps.beginRun(round, session);
      const message = `${assistant.label} ${session === null ? 'begins' : 'goes on'}`;
      emit(input, 'log', { level: 'info', message });
      if (!assistant.tellsTokens) emit(input, 'log', untoldTokens(assistant));
      const sandbox = ports.assistant.sandboxFor(assistant, env);
      const relay = await ports.assistant.openServers(input, workspace, hold.signal);
      try {
        return await runAssistant({
          ...{ assistant, start, root, readable, git, sandbox, env, silentMs, onEvent },
          prompt: promptWhen(session !== null),
          freshPrompt: promptWhen(false),
          servers: relay?.servers ?? [],
          signal: hold.signal,
          ...permission,
        });
      } finally {
        await relay?.close();
      }
    };
    const onWait = (): void => emit(input, 'log', folderWaitLog);
    const lead = async (): Promise<EndedRun> => {
      const end = await ports.attempt.workspace.alone(run, { signal: hold.signal, onWait });
      const delegated = withAnswers(observer.end(end), input);
      await sessionKept;
      const goesOn = end.how === 'stopped' || isUsageLimit(delegated);
      await steps.endRun(round, session, goesOn ? null : delegated);
      return delegated;
    };
    return { end: lead(), takeSpent: observer.takeSpent };
  };

  const delegate = async (input: DelegateInput, signal: AbortSignal): Promise<Delegated> => {
    const key = attemptKey(input.taskId, input.attempt);
    if (ports.live.has(key)) ports.live.answer(key, input.answer?.allowed === true);
    else {
      const opened = await openAttempt(input, ports.attempt, signal);
      const ended = opened.steps.run(input.round)?.end?.delegated;
      if (ended != null) return ended;
      ports.live.begin(key, (hold) => {
        const begun = beginRun(input, opened, hold);
        ports.track(key, begun.end).catch(() => {});
        return begun;
      });
    }
    return ports.live.next(key, signal);
  };

  return {
    prepare: async (input, signal) => {
      const { taskId, attempt, backend, round, resumeAt } = input;
      const assistant = assistantFor(backend);
      const { steps, workspace, failure } = await openAttempt(input, ports.attempt, signal);
      if (failure !== null) return { question: null, failure, conflicts: workspace.conflicts };
      await ports.live.stop(attemptKey(taskId, attempt));
      if (resumeAt !== null || round > 0) await ports.endLeftovers(taskId, attempt);
      const interrupted =
        resumeAt === 'delegating'
          ? prepareInterruptedRun(assistant, steps.run(round), ports.onInterrupted())
          : { question: null, failure: null };
      return { ...interrupted, conflicts: workspace.conflicts };
    },
    delegate,
  };
};
