import type { Assistant as AssistantName, Delegated, Prepared, Reported, Spent } from '../../machines/agent-context.ts';
import type { DelegateInput, PrepareInput, Seat } from '../../machines/agent-selectors.ts';
import { type AttemptKey, attemptKey, noUsage, type Role, type Usage } from '../../machines/task.ts';
import type { Assistant, AssistantEvent, TokensUsed } from '../assistants/port.ts';
import { type RunEnd, runAssistant } from '../assistants/run-assistant.ts';
import { createUsageMeter } from '../assistants/usage-meter.ts';
import type { OnInterrupted } from '../engine/settings.ts';
import type { EventType } from '../journal/event-types.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { createAssistantFrames } from './assistant-frames.ts';
import { firstAssistantPrompt, promptForRun } from './assistant-prompt.ts';
import { createResultReader } from './assistant-result.ts';
import { type AttemptPorts, folderWaitLog, openAttempt } from './first-message.ts';
import { interruptedFailure } from './interrupted-calls.ts';
import type { RoleProfile } from './roles.ts';
import type { Steps } from './steps.ts';

export interface DelegationPorts extends AttemptPorts {
  /** As it is configured now. @throws when it is not */
  readonly assistant: (name: AssistantName) => Assistant;
  /** The model that the user named for the assistant, or null for the assistant's own choice. */
  readonly modelFor: (seat: Seat) => string | null;
  readonly costOf: (model: string | null, used: TokensUsed) => number | null;
  readonly profileOf: (role: Role) => RoleProfile;
  readonly emit: (key: Pick<Seat, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  readonly report: (key: AttemptKey, event: Reported) => void;
  readonly environmentOf: (
    seat: Pick<Seat, 'taskId' | 'attempt'>,
    assistant: Assistant,
  ) => Readonly<Record<string, string>>;
  readonly sandboxFor: (assistant: Assistant, env: Readonly<Record<string, string>>) => Sandbox;
  readonly endLeftovers: (taskId: Seat['taskId'], attempt: number) => Promise<void>;
  /** How long nothing may be heard of an assistant (ms). */
  readonly silentMs: () => number;
  /** What happens to a run that was at work when a server ended. */
  readonly onInterrupted: () => OnInterrupted;
  readonly now: () => number;
}

/** The slots of the agent machine for attempts whose work an assistant does. */
export interface Delegation {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  delegate(input: DelegateInput, signal: AbortSignal): Promise<Delegated>;
}

interface Heard {
  readonly seat: Seat;
  readonly round: number;
  readonly root: string;
  readonly assistant: Assistant;
  readonly model: string | null;
  /** What was counted of the session before. */
  readonly before: Usage;
}

/** The session that the attempt has by now, from this run or an earlier one. */
const sessionOf = (steps: Steps, round: number): string | null => {
  for (let at = round; at >= 0; at -= 1) {
    const session = steps.run(at)?.session ?? null;
    if (session !== null) return session;
  }
  return null;
};

export const createDelegation = (ports: DelegationPorts): Delegation => {
  /** Policy for a run of which nobody knows how far it came; one that was stopped in good order just goes on. */
  const unclear = (assistant: Assistant, steps: Steps, round: number): Prepared => {
    const begun = steps.run(round);
    const isClear = begun === null || (begun.end !== null && (begun.end.delegated !== null || assistant.resumes));
    const policy = ports.onInterrupted();
    if (isClear || policy === 'repeat') return { question: null, failure: null };
    const { name } = assistant;
    if (policy === 'fail')
      return { question: null, failure: { ...interruptedFailure, facts: { interrupted: true, assistant: name } } };
    const again =
      begun.session === null ? 'to let it begin again' : `to let it go on with its session ${begun.session}`;
    const question = `The server stopped while ${name} was at work. It is not known how far it came. Answer 'repeat' ${again}, or say in your words what it shall know as well.`;
    return { question, failure: null };
  };

  /** Shows and counts what a run says, and reports what it spends. */
  const listenTo = ({ seat, round, root, assistant, model, before }: Heard) => {
    const emit = (type: EventType, data: unknown): void => ports.emit(seat, type, data);
    const frames = createAssistantFrames({ root, round, emit, now: ports.now });
    const tally = createUsageMeter({ before, costOf: (used) => ports.costOf(model, used) });
    const ending = createResultReader(assistant);
    const key = attemptKey(seat.taskId, seat.attempt);

    const spend = (): Spent => {
      const spent = tally.take();
      const { modelCalls, inputTokens, outputTokens, cachedTokens, costUsd } = spent;
      const tokens = { input_tokens: inputTokens, output_tokens: outputTokens, cached_tokens: cachedTokens };
      const cost = costUsd === null ? {} : { cost_usd: costUsd };
      if (modelCalls + inputTokens + outputTokens > 0)
        emit('usage', { assistant: assistant.name, model_calls: modelCalls, ...tokens, ...cost });
      return spent;
    };

    return {
      take: (event: AssistantEvent): void => {
        frames.show(event);
        tally.hear(event);
        ending.hear(event);
        // What comes with the end is told with the end.
        if (tally.isDue() && !ending.isSaid()) ports.report(key, { type: 'assistant.reported', spent: spend() });
      },
      end: (end: RunEnd): Delegated => {
        frames.end();
        if (end.leftProcesses) emit('log', { level: 'warn', message: 'processes that it left behind were ended' });
        if (end.quarantined.length > 0) {
          const names = end.quarantined.join(', ');
          emit('log', {
            level: 'warn',
            message: `it made ${names}, which other programs obey; moved to ${end.quarantine}`,
          });
        }
        return { ...ending.outcome(end, frames.artifacts()), spent: spend() };
      },
    };
  };

  const run = async (input: DelegateInput, signal: AbortSignal): Promise<Delegated> => {
    const { backend, round, answer, decision, usage, moneyLeftUsd, ...seat } = input;
    const assistant = ports.assistant(backend as AssistantName);
    const {
      place: { root, readable, git },
      steps,
      first,
    } = await openAttempt(seat, ports, signal);
    const begun = steps.run(round);
    if (begun?.end?.delegated != null) return begun.end.delegated;

    let session = assistant.resumes ? sessionOf(steps, round) : null;
    const told = {
      first: firstAssistantPrompt(ports.profileOf(seat.role), first),
      goesOn: session !== null,
      wasCutShort: begun !== null,
      answer,
      decision,
    };
    const model = ports.modelFor(seat);
    const before = session === null ? noUsage : usage;
    const heard = listenTo({ seat, round, root, assistant, model, before });
    const onEvent = (event: AssistantEvent): void => {
      heard.take(event);
      if (event.type !== 'session' || !assistant.resumes || event.id === session) return;
      session = event.id;
      steps.beginRun(round, session);
    };

    const start = { model, session, taskId: seat.taskId, role: seat.role, moneyLeftUsd };
    const env = ports.environmentOf(seat, assistant);
    const silentMs = ports.silentMs();
    const prompt = promptForRun(told);
    const begin = async (): Promise<RunEnd> => {
      steps.beginRun(round, session);
      const message = `${assistant.name} ${session === null ? 'begins' : 'goes on'}`;
      ports.emit(seat, 'log', { level: 'info', message });
      const sandbox = ports.sandboxFor(assistant, env);
      return runAssistant({ assistant, start, prompt, root, readable, git, sandbox, env, signal, silentMs, onEvent });
    };
    const onWait = (): void => ports.emit(seat, 'log', folderWaitLog);
    const end = await ports.workspace.alone(begin, { signal, onWait });
    const delegated = heard.end(end);
    steps.endRun(round, session, end.how === 'stopped' ? null : delegated);
    return delegated;
  };

  return {
    prepare: async ({ backend, round, turns: _, resumeAt, ...seat }, signal) => {
      const assistant = ports.assistant(backend as AssistantName);
      const { steps } = await openAttempt(seat, ports, signal);
      if (resumeAt !== null || round > 0) await ports.endLeftovers(seat.taskId, seat.attempt);
      return resumeAt === 'delegating' ? unclear(assistant, steps, round) : { question: null, failure: null };
    },
    delegate: run,
  };
};
