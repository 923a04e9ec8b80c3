import type { Backend, Delegated, Prepared } from '../../machines/agent-context.ts';
import type { DelegateInput, PrepareInput } from '../../machines/agent-selectors.ts';
import { type AttemptInput, type AttemptKey, attemptKey } from '../../machines/task.ts';
import type { Assistant } from '../assistants/port.ts';
import {
  type AssistantPorts,
  type AssistantRunPorts,
  beginAssistantRun,
} from './begin-assistant-run.ts';
import { folderTexts, interruptedFailure, type OnInterrupted } from './interrupted-calls.ts';
import type { LiveRuns } from './live-runs.ts';
import { type AttemptPorts, openAttempt } from './open-attempt.ts';
import type { BegunRun } from './run-steps.ts';

export interface DelegationPorts extends AssistantRunPorts {
  readonly attempt: AttemptPorts;
  readonly assistant: AssistantPorts;
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
    return ports.live.next(key, signal);
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
