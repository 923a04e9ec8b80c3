import type { AssistantName, Delegated } from '../../machines/agent-context.ts';
import type { DelegateInput } from '../../machines/agent-selectors.ts';
import { nothingSpent } from '../../machines/budget.ts';
import { type AttemptInput, type Failure, noUsage, type Role } from '../../machines/task.ts';
import type { Assistant, AssistantEvent } from '../assistants/port.ts';
import { providersOf } from '../assistants/providers.ts';
import { type AssistantRun, type RunEnd, runAssistant } from '../assistants/run-assistant.ts';
import type { Relay } from '../mcp/relay.ts';
import type { Endpoint } from '../network/proxy.ts';
import type { Network, Sandbox } from '../sandbox/port.ts';
import { firstAssistantPrompt, promptForRun } from './assistant-prompt.ts';
import { observeRun, type RunObserverPorts, untoldTokens } from './assistant-run.ts';
import { createKeepWork, type KeepWork } from './keep-work.ts';
import { type BegunWork, type EndedRun, type RunHold, shownArguments } from './live-runs.ts';
import { callNeedsApproval } from './needs-approval.ts';
import { type AttemptPorts, folderWaitLog, type OpenedAttempt } from './open-attempt.ts';
import { answersIn } from './review-text.ts';
import type { RoleProfile } from './roles.ts';
import { type RunSteps, runKey } from './run-steps.ts';

export interface AssistantPorts {
  readonly find: (name: AssistantName) => Assistant;
  /** Null leaves the choice to the assistant. */
  readonly modelFor: (attempt: AttemptInput) => string | null;
  readonly environmentOf: (
    attempt: Pick<AttemptInput, 'taskId' | 'attempt'>,
    assistant: Assistant,
  ) => Readonly<Record<string, string>>;
  readonly sandboxFor: (assistant: Assistant, env: Readonly<Record<string, string>>) => Sandbox;
  /** `always`: what it reaches whatever the list of hosts says. */
  readonly networkFor: (attempt: AttemptInput, always: readonly Endpoint[]) => Network;
  /** The user's MCP servers, which end with the run; null: the role has none. */
  readonly openServers: (
    attempt: AttemptInput,
    workspace: Pick<OpenedAttempt['workspace'], 'root' | 'readable' | 'git'>,
    signal: AbortSignal,
  ) => Promise<Relay | null>;
  /** An assistant that is silent for longer (ms) is ended. */
  readonly silentMs: () => number;
}

export interface AssistantRunPorts {
  readonly attempt: Pick<AttemptPorts, 'workspace' | 'emit'>;
  readonly assistant: Omit<AssistantPorts, 'find'>;
  readonly run: RunObserverPorts;
  readonly profileOf: (role: Role) => RoleProfile;
}

const sessionOf = (steps: RunSteps, round: number): string | null => {
  for (let at = round; at >= 0; at -= 1) {
    const session = steps.run(at)?.session ?? null;
    if (session !== null) return session;
  }
  return null;
};

/** An assistant answers the comments of a review in its last message. */
const withAnswers = (delegated: EndedRun, { review }: DelegateInput): EndedRun =>
  delegated.kind === 'done' && review !== undefined
    ? { ...delegated, answers: answersIn(delegated.summary, review.comments) }
    : delegated;

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

/** While an assistant is at work, its folder is kept about as often. */
const keepEveryMs = 15_000;

/** Keeps the folder while something happens. @returns ends it */
const keepMeanwhile = (keepWork: KeepWork, step: string, signal: AbortSignal) => {
  let isChanged = false;
  let kept = Promise.resolve();
  const timer = setInterval(() => {
    if (!isChanged) return;
    isChanged = false;
    kept = kept.then(() => keepWork(step, signal));
  }, keepEveryMs).unref();
  return {
    happened: (): void => {
      isChanged = true;
    },
    end: async (): Promise<void> => {
      clearInterval(timer);
      await kept;
    },
  };
};

type BudgetEnd = Pick<Extract<EndedRun, { kind: 'failed' }>, 'kind' | 'failure'>;

/**
 * Asks about budgets before a run and after each report of it, and ends it at one. An assistant makes
 * its calls by itself: those that it has not reported are in flight.
 */
const watchBudget = (ports: RunObserverPorts, input: DelegateInput) => {
  const stop = new AbortController();
  let refused: Failure | null = null;
  let left: number | null = null;
  const look = async (): Promise<Failure | null> => {
    refused ??= await ports.budgetRefusal(input);
    return refused;
  };
  const refusal = async (): Promise<BudgetEnd | null> => {
    const failure = await look();
    return failure === null ? null : { kind: 'failed', failure };
  };
  return {
    signal: stop.signal,
    refusal,
    ports: {
      ...ports,
      report: (...report: Parameters<RunObserverPorts['report']>): void => {
        ports.report(...report);
        look().then(
          (found) => {
            if (found !== null) stop.abort();
          },
          () => {},
        );
      },
    },
    /** The least of the limit of the attempt and the budgets, for an assistant that keeps to it. */
    moneyLeftUsd: async (): Promise<number | null> => {
      left = await ports.leftUsd(input);
      const both = [left, input.moneyLeftUsd].filter((usd) => usd !== null);
      return both.length === 0 ? null : Math.min(...both);
    },
    /** Null for a run that ended for another reason. */
    reasonOf: async (said: EndedRun): Promise<BudgetEnd | null> => {
      if (stop.signal.aborted && said.kind === 'failed') return refusal();
      const keptTo = said.kind === 'failed' && said.failure.code === 'budget_exceeded';
      const isOfBudget = left !== null && left < (input.moneyLeftUsd ?? Number.POSITIVE_INFINITY);
      return keptTo && isOfBudget ? refusal() : null;
    },
  };
};

/** Begins a round of an assistant, in its session if it has one; the folder is its own meanwhile. */
export const beginAssistantRun = (
  ports: AssistantRunPorts,
  assistant: Assistant,
  input: DelegateInput,
  opened: OpenedAttempt,
  hold: RunHold,
): BegunWork => {
  const { emit } = ports.run;
  const budget = watchBudget(ports.run, input);
  const { taskId, role, round, answer, told, decision } = input;
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
  const observer = observeRun(budget.ports, { ...observed, isWaiting: hold.isWaiting });
  let sessionKept = Promise.resolve();
  const keepWork = createKeepWork(ports.attempt, input);
  const keeping = keepMeanwhile(keepWork, `${runKey(round)}:part`, hold.signal);
  const onEvent = (event: AssistantEvent): void => {
    keeping.happened();
    observer.onEvent(event);
    if (event.type !== 'session' || !assistant.resumes || event.id === session) return;
    session = event.id;
    sessionKept = steps.beginRun(round, session);
    sessionKept.catch(() => {});
  };

  const env = ports.assistant.environmentOf(input, assistant);
  const silentMs = ports.assistant.silentMs();
  const permission = permissionFor(input, hold);
  const signal = AbortSignal.any([hold.signal, budget.signal]);
  const run = async (): Promise<RunEnd> => {
    const start = { model, session, taskId, role, moneyLeftUsd: await budget.moneyLeftUsd() };
    await steps.beginRun(round, session);
    const message = `${assistant.label} ${session === null ? 'begins' : 'goes on'}`;
    emit(input, 'log', { level: 'info', message });
    if (!assistant.tellsTokens) emit(input, 'log', untoldTokens(assistant));
    const sandbox = ports.assistant.sandboxFor(assistant, env);
    const relay = await ports.assistant.openServers(input, workspace, signal);
    try {
      const servers = relay?.servers ?? [];
      const network = ports.assistant.networkFor(input, [
        ...providersOf(assistant, { ...start, promptFile: '' }, env),
        ...servers.map(({ url }) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })),
      ]);
      return await runAssistant({
        ...{ assistant, start, root, readable, git, sandbox, network, env, silentMs, onEvent },
        prompt: promptWhen(session !== null),
        freshPrompt: promptWhen(false),
        servers,
        signal,
        ...permission,
      });
    } finally {
      await relay?.close();
    }
  };
  const onWait = (): void => emit(input, 'log', folderWaitLog);
  const lead = async (): Promise<EndedRun> => {
    const refused = await budget.refusal();
    if (refused !== null) {
      await keeping.end();
      return { ...refused, spent: nothingSpent };
    }
    const end = await ports.attempt.workspace
      .alone(run, { signal: hold.signal, onWait })
      .finally(keeping.end);
    await keepWork(runKey(round), hold.signal);
    const said = withAnswers(observer.end(end), input);
    await sessionKept;
    const stopped = await budget.reasonOf(said);
    const delegated = stopped === null ? said : { ...stopped, spent: said.spent };
    const goesOn = end.how === 'stopped' || stopped !== null || isUsageLimit(delegated);
    await steps.endRun(round, session, goesOn ? null : delegated);
    return delegated;
  };
  return { end: lead(), takeSpent: observer.takeSpent };
};
