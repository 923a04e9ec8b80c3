import type {
  AssistantName,
  Backend,
  Delegated,
  Prepared,
  Spent,
} from '../../machines/agent/agent-context.ts';
import type { DelegateInput, PrepareInput } from '../../machines/agent/agent-selectors.ts';
import { nothingSpent } from '../../machines/agent/budget.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
  noUsage,
  type Role,
} from '../../machines/task.ts';
import type { Assistant, AssistantEvent } from '../assistants/port.ts';
import { providersOf } from '../assistants/providers.ts';
import { type AssistantRun, type RunEnd, runAssistant } from '../assistants/run-assistant.ts';
import type { ImageData } from '../files/image.ts';
import type { Relay } from '../mcp/relay.ts';
import type { Endpoint } from '../network/proxy.ts';
import type { Network, Sandbox } from '../sandbox/port.ts';
import { firstAssistantPrompt, promptForRun } from './assistant-prompt.ts';
import { observeRun, type RunObserverPorts, untoldTokens } from './assistant-run.ts';
import { createKeepWork, type KeepWork } from './keep-work.ts';
import {
  type BegunWork,
  type EndedRun,
  type LiveRuns,
  type RunHold,
  shownArguments,
} from './live-runs.ts';
import {
  type AttemptPorts,
  folderWaitLog,
  type OpenedAttempt,
  openAttempt,
} from './open-attempt.ts';
import { answersIn, type RoleProfile } from './prompt.ts';
import { type BegunRun, type RunSteps, runKey } from './steps.ts';
import { folderTexts, interruptedFailure, type OnInterrupted } from './tool-calls.ts';

/** The names in `require_approval` that a call of an assistant falls under. */
const approvalsByTool: Readonly<Record<string, readonly string[]>> = {
  read: ['read'],
  edit: ['edit', 'write'],
  delete: ['edit', 'write', 'bash'],
  move: ['edit', 'write', 'bash'],
  bash: ['bash'],
  grep: ['grep', 'find'],
  think: [],
};

/** A call of an unknown kind needs approval where any call does. */
export const callNeedsApproval = (tool: string, approvals: readonly string[]): boolean =>
  (Object.hasOwn(approvalsByTool, tool) ? (approvalsByTool[tool] ?? []) : approvals).some((name) =>
    approvals.includes(name),
  );

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

interface AssistantRunPorts {
  readonly attempt: Pick<AttemptPorts, 'workspace' | 'emit' | 'images'>;
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
const beginAssistantRun = (
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
      first: firstAssistantPrompt(ports.profileOf(role), first.text),
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
  const isWaiting = (): boolean => hold.isWaiting() || hold.signal.aborted;
  const observer = observeRun(budget.ports, { ...observed, isWaiting });
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
  /** One that is gone from the store is left out. */
  const imagesFor = async (): Promise<readonly ImageData[]> => {
    const found = (first.images ?? []).map(({ digest }) =>
      ports.attempt.images.find(taskId, digest),
    );
    return (await Promise.all(found)).filter((image) => image !== null);
  };
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
        assistant,
        start,
        root,
        readable,
        git,
        sandbox,
        network,
        env,
        silentMs,
        onEvent,
        prompt: promptWhen(session !== null),
        freshPrompt: promptWhen(false),
        images: await imagesFor(),
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

interface DelegationPorts extends AssistantRunPorts {
  readonly attempt: AttemptPorts;
  readonly assistant: AssistantPorts;
  readonly endLeftovers: (taskId: AttemptInput['taskId'], attempt: number) => Promise<void>;
  readonly onInterrupted: () => OnInterrupted;
  /** Counts a run that was stopped: its agent is gone. */
  readonly addCut: (key: AttemptKey, spent: Spent) => void;
  readonly live: LiveRuns;
  /** An attempt is over only after its work has ended. */
  readonly track: (key: AttemptKey, work: Promise<unknown>) => Promise<unknown>;
}

/** The actors `prepare` and `delegate` of the agent machine, for attempts of an assistant. */
export interface Delegation {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  delegate(input: DelegateInput, signal: AbortSignal): Promise<Delegated>;
}

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

const assistantOf = ({ find }: DelegationPorts['assistant'], backend: Backend): Assistant => {
  if (backend === 'builtin') throw new Error('the built-in backend delegates to no assistant');
  return find(backend);
};

export const createDelegation = (ports: DelegationPorts): Delegation => {
  const assistantFor = (backend: Backend): Assistant => assistantOf(ports.assistant, backend);

  const delegate = async (input: DelegateInput, signal: AbortSignal): Promise<Delegated> => {
    const key = attemptKey(input.taskId, input.attempt);
    if (ports.live.has(key)) ports.live.answer(key, input.answer?.allowed === true);
    else {
      const opened = await openAttempt(input, ports.attempt, signal);
      const ended = opened.steps.run(input.round)?.end?.delegated;
      if (ended != null) return ended;
      ports.live.begin(key, (hold) => {
        const begun = beginAssistantRun(ports, assistantFor(input.backend), input, opened, hold);
        ports.track(key, begun.end).catch(() => {});
        return begun;
      });
    }
    const delegated = await ports.live.next(key, signal);
    if (signal.aborted) ports.addCut(key, delegated.spent);
    return delegated;
  };

  return {
    prepare: async (input, signal) => {
      const { taskId, attempt, backend, round, resumeAt } = input;
      const assistant = assistantFor(backend);
      const { steps, workspace, failure } = await openAttempt(input, ports.attempt, signal);
      if (failure !== null) return { question: null, failure, conflicts: workspace.conflicts };
      await ports.live.stop(attemptKey(taskId, attempt));
      if (resumeAt !== null)
        for (const told of folderTexts(workspace).logs) ports.attempt.emit(input, 'log', told);
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
