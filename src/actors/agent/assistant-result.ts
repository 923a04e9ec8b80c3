import type { Delegated } from '../../machines/agent-context.ts';
import type { Failure } from '../../machines/task.ts';
import type { Assistant, AssistantEvent } from '../assistants/port.ts';
import { mayPass } from '../assistants/program.ts';
import type { RunEnd } from '../assistants/run-assistant.ts';
import { reasonIn } from './assistant-prompt.ts';

type Outcome =
  | Omit<Extract<Delegated, { kind: 'done' }>, 'spent'>
  | Omit<Extract<Delegated, { kind: 'failed' }>, 'spent'>;

/** What a run comes to, from what it said and how it ended. Only a result in words is success. */
export interface Ending {
  hear(event: AssistantEvent): void;
  /** Whether it has said how it ended. */
  isSaid(): boolean;
  outcome(end: RunEnd, artifacts: readonly string[]): Outcome;
}

const longestSummary = 16 * 1024;

const failed = (message: string, more: Partial<Failure> = {}): Outcome => ({
  kind: 'failed',
  failure: { code: 'model_failed', message, facts: {}, retryable: false, ...more },
});

const resultFrom = (name: string, text: string, artifacts: readonly string[]): Outcome => {
  const summary = text.trim().slice(-longestSummary);
  if (summary === '') return failed(`${name} ended without a result`);
  const reason = reasonIn(summary);
  if (reason === null) return { kind: 'done', summary, artifacts };
  return failed(`the agent gave up: ${reason}`, { facts: { gave_up: true } });
};

/** Lines that Node and others print around the one that says what is wrong. */
const isNoise = (line: string): boolean =>
  /^\s*$|^Node\.js v\d|^\s+\S|^(node:|file:\/\/|\/)\S+:\d+$|^[\s^~{}[\]();,]*$/.test(line);

/** The last lines that say something. */
export const lastWords = (text: string): string => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const telling = lines.filter((line) => !isNoise(line));
  return (telling.length > 0 ? telling : lines)
    .slice(-3)
    .map((line) => line.trim())
    .join('; ')
    .slice(0, 500);
};

const withWords = (message: string, stderr: string): string => {
  const words = lastWords(stderr);
  return words === '' ? message : `${message}: ${words}`;
};

/** It ended without a word of how. */
const silentEnd = ({ name, endsByExit }: Assistant, end: RunEnd, artifacts: readonly string[]): Outcome => {
  const { how, exitCode, stdout, stderr } = end;
  const tail = stderr.trim();
  if (how === 'stopped') return failed(`${name} was stopped`);
  if (how === 'refused') return failed(tail, { code: 'tool_failed' });
  if (how === 'not_started') return failed(`${name} could not be started: ${tail}`, { code: 'tool_failed' });
  if (how === 'silent')
    return failed(`nothing was heard of ${name} for too long`, {
      code: 'timed_out',
      facts: { limit: 'idle_timeout_seconds' },
      retryable: true,
    });
  if (how === 'timeout') return failed(`${name} did not end in a day`, { code: 'timed_out' });
  if (exitCode === 0)
    return endsByExit && stdout.trim() !== ''
      ? resultFrom(name, stdout, artifacts)
      : failed(withWords(`${name} ended without a result`, tail));
  const facts = { exit_code: exitCode, stderr: tail };
  return failed(withWords(`${name} ended with exit code ${exitCode}`, tail), { facts, retryable: mayPass(tail) });
};

export const createEnding = (assistant: Assistant): Ending => {
  const { name } = assistant;
  let lastText = '';
  let result: { readonly text: string } | null = null;
  let ranCommand = false;
  let problem: string | null = null;
  let failure: Extract<AssistantEvent, { type: 'failed' }> | null = null;

  return {
    hear: (event) => {
      if (event.type === 'text') lastText = event.text;
      if (event.type === 'result') result = { text: event.text || lastText };
      if (event.type === 'failed') failure = event;
      if (event.type !== 'command') return;
      if (event.problem === null) ranCommand = true;
      else problem = event.problem;
    },
    isSaid: () => result !== null || failure !== null,
    outcome: (end, artifacts) => {
      if (end.how === 'flooded') return failed(`${name} wrote more than 64 MiB and was ended`);
      if (failure !== null) {
        const { code, message, retryable } = failure;
        return failed(`${name} failed: ${message}`, { code, retryable });
      }
      if (result !== null && problem !== null && !ranCommand)
        return failed(`${name} could start none of its commands: ${problem}`, { code: 'tool_failed' });
      return result === null ? silentEnd(assistant, end, artifacts) : resultFrom(name, result.text, artifacts);
    },
  };
};
