import { resolve } from 'node:path';
import type { Delegated, Reported, Spent } from '../../machines/agent/agent-context.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
  type Usage,
} from '../../machines/task.ts';
import { errorSentence } from '../assistants/error-sentence.ts';
import type { Assistant, AssistantEvent, TokensUsed } from '../assistants/port.ts';
import { isTransient } from '../assistants/program.ts';
import { outputMiB, type RunEnd } from '../assistants/run-assistant.ts';
import { createUsageMeter, limitEndIn, usageLimitIn } from '../assistants/usage-meter.ts';

import { relativeInside } from '../files/link-places.ts';
import type { EventType } from '../journal/event-types.ts';
import { createTextGatherer, plainText } from '../process/text-gatherer.ts';

import { giveUpReason } from './assistant-prompt.ts';
import type { EndedRun } from './live-runs.ts';

type RunOutcome =
  | Omit<Extract<Delegated, { kind: 'done' }>, 'spent'>
  | Omit<Extract<Delegated, { kind: 'failed' }>, 'spent'>;

/** Reads the outcome of a run from its events and its end. Only a result text is success. */
interface ResultReader {
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
  const summary = plainText(text).trim().slice(-maxSummaryLength);
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

const lastMeaningfulLines = (text: string): string => {
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
  if (code !== 'model_failed' || (limited === null && usageLimitIn(message, now) === null))
    return failedOutcome(said, { code, retryable });
  const resetsAt = limited?.resetsAt ?? limitEndIn(message, now);
  const pause = resetsAt === null ? {} : { retry_after_ms: Math.max(0, resetsAt - now) };
  return failedOutcome(said, {
    facts: { kind: 'usage_limit', ...pause },
    retryable: true,
  });
};

const createResultReader = (assistant: Assistant, now: () => number): ResultReader => {
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
      if (event.type === 'limited')
        limited = { ...event, resetsAt: event.resetsAt ?? limited?.resetsAt ?? null };
      // It goes on: the limit did not hold.
      if (event.type === 'tool_started') limited = null;
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

/** The frames of a run, at most 4 MiB of them. */
interface AssistantFrames {
  show(event: AssistantEvent): void;
  end(): void;
  /** Relative to the workspace root. */
  artifacts(): readonly string[];
}

interface AssistantFramesOptions {
  readonly root: string;
  /** Call ids are unique within one round only. */
  readonly round: number;
  readonly emit: (type: EventType, data: unknown) => void;
  readonly now: () => number;
}

const maxTextLength = 2_000;
const maxEmittedLength = 4 * 1024 * 1024;
const frameOverhead = 64;
const maxArtifacts = 200;

/**
 * Passes on frames up to `maxEmittedLength`; a last log frame then says that the rest is left out.
 */
const boundedEmit = (emit: AssistantFramesOptions['emit']): AssistantFramesOptions['emit'] => {
  let left = maxEmittedLength;
  return (type, data) => {
    if (left <= 0) return;
    left -= frameOverhead + JSON.stringify(data).length;
    emit(type, data);
    if (left <= 0)
      emit('log', {
        level: 'warn',
        message: 'the assistant has written 4 MiB; further output is not streamed',
      });
  };
};

const pathInside = (root: string, path: string): string | null =>
  relativeInside(root, resolve(root, path)) || null;

const createAssistantFrames = ({
  root,
  round,
  emit: pass,
  now,
}: AssistantFramesOptions): AssistantFrames => {
  const emit = boundedEmit(pass);
  const text = createTextGatherer((piece) => emit('text_delta', { text: piece }));
  const running = new Map<string, { readonly tool: string; readonly startedAt: number }>();
  const changed = new Set<string>();

  const show = (event: AssistantEvent): void => {
    if (event.type === 'text') text.add(event.text);
    else text.end();
    if (event.type === 'note')
      emit('log', { level: event.level, message: errorSentence(event.message) });
    if (event.type === 'session')
      emit('log', { level: 'info', message: `the session of the assistant is ${event.id}` });
    if (event.type === 'tool_started') {
      const { callId, tool, arguments: given } = event;
      running.set(callId, { tool, startedAt: now() });
      emit('tool_start', {
        call_id: `${round}:${callId}`,
        tool,
        arguments: given.slice(0, maxTextLength),
      });
    }
    if (event.type === 'tool_ended') {
      const { callId, ok, output } = event;
      const { tool, startedAt } = running.get(callId) ?? { tool: 'tool', startedAt: now() };
      running.delete(callId);
      const times = { duration_ms: now() - startedAt, output: output.slice(0, maxTextLength) };
      emit('tool_end', { call_id: `${round}:${callId}`, tool, ok, ...times });
    }
    if (event.type === 'changed' && changed.size < maxArtifacts) {
      const path = pathInside(root, event.path);
      if (path !== null) changed.add(path);
    }
  };

  return { show, end: text.end, artifacts: () => [...changed] };
};

export interface RunObserverPorts {
  readonly emit: (
    key: Pick<AttemptInput, 'taskId' | 'attempt'>,
    type: EventType,
    data: unknown,
  ) => void;
  readonly report: (key: AttemptKey, event: Reported) => void;
  readonly costOf: (model: string | null, used: TokensUsed) => number | null;
  /** Why budgets allow no further paid call, or null. */
  readonly budgetRefusal: (attempt: AttemptInput) => Promise<Failure | null>;
  /** The USD that budgets still allow; null: there is none. */
  readonly leftUsd: (attempt: AttemptInput) => Promise<number | null>;
  readonly now: () => number;
}

interface ObservedRun {
  readonly attempt: AttemptInput;
  readonly round: number;
  readonly root: string;
  readonly assistant: Assistant;
  readonly model: string | null;
  readonly before: Usage;
  /** While a person decides, and once it is stopped, nobody takes reports. */
  readonly isWaiting: () => boolean;
}

const usageFrame = ({
  modelCalls,
  inputTokens,
  outputTokens,
  cachedTokens,
  cacheWriteTokens,
  tokensUnknown,
  costUsd,
}: Spent) => ({
  model_calls: modelCalls,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
  cache_write_tokens: cacheWriteTokens || undefined,
  tokens_unknown: tokensUnknown,
  cost_usd: costUsd ?? undefined,
});

export const untoldTokens = ({ label }: Pick<Assistant, 'label'>) => ({
  level: 'info',
  message: `${label} does not tell its tokens: max_tokens_total does not limit it`,
});

export const observeRun = (
  ports: RunObserverPorts,
  { attempt, round, root, assistant, model, before, isWaiting }: ObservedRun,
) => {
  const emit = (type: EventType, data: unknown): void => ports.emit(attempt, type, data);
  const warn = (message: string): void => emit('log', { level: 'warn', message });
  const frames = createAssistantFrames({ root, round, emit, now: ports.now });
  let toldModel: string | null = null;
  let isOver = false;
  // Its own account of the cost comes with its result: one that was cut is estimated, at its end.
  const costOf = (used: TokensUsed): number | null =>
    ports.costOf(model ?? (isOver ? toldModel : null), used);
  const meter = createUsageMeter({ before, costOf });
  const result = createResultReader(assistant, ports.now);
  const key = attemptKey(attempt.taskId, attempt.attempt);

  let tellsTokens = assistant.tellsTokens;
  const takeSpent = (): Spent => {
    const taken = meter.take();
    const spent = tellsTokens ? taken : { ...taken, tokensUnknown: true as const };
    if (spent.modelCalls + spent.inputTokens + spent.outputTokens + (spent.costUsd ?? 0) > 0)
      emit('usage', {
        assistant: assistant.label,
        ...usageFrame(spent),
        run: attempt.options.run?.id,
      });
    return spent;
  };

  return {
    takeSpent,
    onEvent: (event: AssistantEvent): void => {
      if (event.type === 'untold') {
        tellsTokens = false;
        emit('log', untoldTokens(assistant));
      }
      if (event.type === 'model') toldModel = event.name;
      frames.show(event);
      meter.add(event);
      result.add(event);
      // `end` reports the usage that comes with the result.
      if (meter.isDue() && !result.isKnown() && !isWaiting())
        ports.report(key, { type: 'assistant.reported', spent: takeSpent() });
    },
    end: (end: RunEnd): EndedRun => {
      isOver = true;
      frames.end();
      if (end.leftProcesses) warn('the assistant left processes behind; they were ended');
      if (end.quarantined.length > 0) {
        const names = end.quarantined.join(', ');
        warn(`the assistant made ${names}, which other programs obey; moved to ${end.quarantine}`);
      }
      return { ...result.outcome(end, frames.artifacts()), spent: takeSpent() };
    },
  };
};
