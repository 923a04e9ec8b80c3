import type { Reported, Spent } from '../../machines/agent-context.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
  type Usage,
} from '../../machines/task.ts';
import type { Assistant, AssistantEvent, TokensUsed } from '../assistants/port.ts';
import type { RunEnd } from '../assistants/run-assistant.ts';
import { createUsageMeter } from '../assistants/usage-meter.ts';
import type { EventType } from '../journal/event-types.ts';
import { createAssistantFrames } from './assistant-frames.ts';
import { createResultReader } from './assistant-result.ts';
import type { EndedRun } from './live-runs.ts';

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
  /** While a person decides, nobody takes reports. */
  readonly isWaiting: () => boolean;
}

const usageFrame = ({
  modelCalls,
  inputTokens,
  outputTokens,
  cachedTokens,
  tokensUnknown,
  costUsd,
}: Spent) => ({
  model_calls: modelCalls,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
  ...(tokensUnknown === undefined ? {} : { tokens_unknown: tokensUnknown }),
  ...(costUsd === null ? {} : { cost_usd: costUsd }),
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
  const costOf = (used: TokensUsed): number | null => ports.costOf(model, used);
  const meter = createUsageMeter({ before, costOf });
  const result = createResultReader(assistant, ports.now);
  const key = attemptKey(attempt.taskId, attempt.attempt);

  let tellsTokens = assistant.tellsTokens;
  const takeSpent = (): Spent => {
    const taken = meter.take();
    const spent = tellsTokens ? taken : { ...taken, tokensUnknown: true as const };
    if (spent.modelCalls + spent.inputTokens + spent.outputTokens > 0)
      emit('usage', {
        ...{ assistant: assistant.label, ...usageFrame(spent) },
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
      frames.show(event);
      meter.add(event);
      result.add(event);
      // `end` reports the usage that comes with the result.
      if (meter.isDue() && !result.isKnown() && !isWaiting())
        ports.report(key, { type: 'assistant.reported', spent: takeSpent() });
    },
    end: (end: RunEnd): EndedRun => {
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
