import type { Delegated } from '../../machines/agent-context.ts';
import type { Failure } from '../../machines/task.ts';
import { errorSentence } from '../assistants/error-sentence.ts';
import type { Assistant, AssistantEvent } from '../assistants/port.ts';
import { isTransient } from '../assistants/program.ts';
import { outputMiB, type RunEnd } from '../assistants/run-assistant.ts';
import { usageLimitIn } from '../assistants/usage-limit.ts';
import { giveUpReason } from './assistant-prompt.ts';

type RunOutcome =
  | Omit<Extract<Delegated, { kind: 'done' }>, 'spent'>
  | Omit<Extract<Delegated, { kind: 'failed' }>, 'spent'>;

/** Reads the outcome of a run from its events and its end. Only a result text is success. */
export interface ResultReader {
  add(event: AssistantEvent): void;
  /** True once the assistant has reported a result or a failure. */
  isKnown(): boolean;
  outcome(end: RunEnd, artifacts: readonly string[]): RunOutcome;
}

const maxSummaryLength = 16 * 1024;

const failedOutcome = (message: string, more: Partial<Failure> = {}): RunOutcome => ({
  kind: 'failed',
  failure: { code: 'model_failed', message, facts: {}, retryable: false, ...more },
});

const outcomeFromText = (name: string, text: string, artifacts: readonly string[]): RunOutcome => {
  const summary = text.trim().slice(-maxSummaryLength);
  if (summary === '')
    return failedOutcome(`${name} ended without a result`, { facts: { no_result: true } });
  const reason = giveUpReason(summary);
  if (reason === null) return { kind: 'done', summary, artifacts };
  return failedOutcome(`the agent gave up: ${reason}`, { facts: { gave_up: true } });
};

/** True for warnings, stack frames and blank lines, which Node and others print around an error. */
const isNoiseLine = (line: string): boolean =>
  /^\s*$|^Node\.js v\d|^\((?:node:\d+\) |Use `node --trace-)|^\s+\S|^(node:|file:\/\/|\/)\S+:\d+$|^[\s^~{}[\]();,]*$/.test(
    line,
  );

export const lastMeaningfulLines = (text: string): string => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const meaningful = lines.filter((line) => !isNoiseLine(line));
  return (meaningful.length > 0 ? meaningful : lines)
    .slice(-3)
    .map((line) => line.trim())
    .join('; ')
    .slice(0, 500);
};

const withStderr = (message: string, stderr: string): string => {
  const words = lastMeaningfulLines(stderr);
  return words === '' ? message : `${message}: ${words}`;
};

const outcomeWithoutResult = (
  { label: name, endsByExit }: Assistant,
  end: RunEnd,
  artifacts: readonly string[],
): RunOutcome => {
  const { how, exitCode, stdout, stderr } = end;
  const tail = stderr.trim();
  if (how === 'stopped') return failedOutcome(`${name} was stopped`);
  if (how === 'not_started')
    return failedOutcome(`${name} could not be started: ${tail}`, { code: 'tool_failed' });
  if (how === 'silent')
    return failedOutcome(`${name} was silent for too long`, {
      code: 'timed_out',
      facts: { limit: 'idle_timeout_seconds' },
      retryable: true,
    });
  if (how === 'timeout')
    return failedOutcome(`${name} did not end within a day`, { code: 'timed_out' });
  if (exitCode === 0)
    return endsByExit && stdout.trim() !== ''
      ? outcomeFromText(name, stdout, artifacts)
      : failedOutcome(withStderr(`${name} ended without a result`, tail), {
          facts: { no_result: true },
        });
  const facts = { exit_code: exitCode, stderr: tail };
  return failedOutcome(withStderr(`${name} ended with exit code ${exitCode}`, tail), {
    facts,
    retryable: isTransient(tail),
  });
};

type Failed = Extract<AssistantEvent, { type: 'failed' }>;
type LimitedEvent = Extract<AssistantEvent, { type: 'limited' }>;

/** A used-up quota, or the failure as the assistant reports it. */
const failureOutcome = (
  name: string,
  { code, message, retryable }: Failed,
  limited: LimitedEvent | null,
  now: number,
): RunOutcome => {
  const said = `${name} failed: ${errorSentence(message)}`;
  const limit = usageLimitIn(message, now);
  if (code !== 'model_failed' || (limit === null && limited === null))
    return failedOutcome(said, { code, retryable });
  const resetsAt = limited?.resetsAt ?? limit?.resetsAt ?? null;
  const pause = resetsAt === null ? {} : { retry_after_ms: Math.max(0, resetsAt - now) };
  return failedOutcome(said, {
    facts: { kind: 'usage_limit', ...pause },
    retryable: true,
  });
};

export const createResultReader = (assistant: Assistant, now: () => number): ResultReader => {
  const { label: name } = assistant;
  let lastText = '';
  let result: { readonly text: string } | null = null;
  let ranCommand = false;
  let problem: string | null = null;
  let failure: Failed | null = null;
  let limited: LimitedEvent | null = null;

  return {
    add: (event) => {
      if (event.type === 'text') lastText = event.text;
      if (event.type === 'result') result = { text: event.text || lastText };
      if (event.type === 'failed') failure = event;
      if (event.type === 'limited') limited = event;
      if (event.type !== 'command') return;
      if (event.problem === null) ranCommand = true;
      else problem = event.problem;
    },
    isKnown: () => result !== null || failure !== null,
    outcome: (end, artifacts) => {
      if (end.how === 'refused') return failedOutcome(end.stderr.trim(), { code: 'tool_failed' });
      if (end.how === 'flooded')
        return failedOutcome(`${name} wrote more than ${outputMiB(assistant)} MiB and was ended`);
      if (failure !== null) return failureOutcome(name, failure, limited, now());
      if (result !== null && problem !== null && !ranCommand)
        return failedOutcome(`${name} could not start any of its commands: ${problem}`, {
          code: 'tool_failed',
        });
      return result === null
        ? outcomeWithoutResult(assistant, end, artifacts)
        : outcomeFromText(name, result.text, artifacts);
    },
  };
};
