import type { TaskView } from '../../actors/journal/task-view.ts';
import { asksForStep } from '../../machines/for-person.ts';
import { budgetInReason } from '../../machines/phase.ts';
import { goOnWords, isInQueue, mergeWord, pullRequestOf } from '../words/state-words.ts';
import { costText } from './money.ts';

/** `950`, `12.3k`. */
export const tokenCount = (count: number): string =>
  count < 10_000 ? String(count) : `${(count / 1_000).toFixed(count < 100_000 ? 1 : 0)}k`;

/**
 * `12.3k tokens in (4000 cached, 900 written to the cache), 321 out`, `tokens unknown`; undefined
 * where none were counted.
 */
export const tokensText = (usage: TaskView['usage']): string | undefined => {
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens = 0 } = usage;
  if (usage.tokens_unknown === true) return 'tokens unknown';
  if (input_tokens + output_tokens === 0) return undefined;
  const parts = [
    cached_tokens > 0 ? `${tokenCount(cached_tokens)} cached` : null,
    cache_write_tokens > 0 ? `${tokenCount(cache_write_tokens)} written to the cache` : null,
  ].filter((part) => part !== null);
  const cache = parts.length === 0 ? '' : ` (${parts.join(', ')})`;
  return `${tokenCount(input_tokens)} tokens in${cache}, ${tokenCount(output_tokens)} out`;
};

/** `2 of 3`, `2` */
export const attemptText = ({
  attempt,
  max_attempts: most = attempt,
}: Pick<TaskView, 'attempt' | 'max_attempts'>): string =>
  most > attempt || most > 1 ? `${attempt} of ${most}` : `${attempt}`;

/** What a run used, as the end of a sentence: `; 12.3k tokens in, 321 out, $0.42`. */
export const usedText = (usage: TaskView['usage']): string => {
  const used = [tokensText(usage), costText(usage.cost_usd)].filter((text) => text !== undefined);
  return used.length === 0 ? '' : `; ${used.join(', ')}`;
};

type Step = (command: string, does: string) => string;

/** A question of a workflow takes its answer as the reason. */
const personsSteps = (id: string, labels: readonly string[], step: Step): readonly string[] =>
  asksForStep(labels)
    ? [
        step(`close ${id} --reason "yes, …"`, 'do the step'),
        step(`close ${id} --reason "no, …" `, 'leave it out'),
      ]
    : [step(`close ${id}`, 'when you have done it')];

/** Beside a look at the changes. */
const completeSteps = (
  { task_id: id, ...task }: Pick<TaskView, 'task_id' | 'status' | 'work' | 'pull_request'>,
  step: Step,
): readonly string[] => {
  const { work, pull_request } = task;
  if (isInQueue(work)) return [step(`cancel ${id}`, 'stop that; it stays as it is')];
  if (mergeWord(work) === 'merged') return [step(`undo ${id}`, 'take it back')];
  if (mergeWord(work) !== 'not merged' || pull_request?.state === 'merged') return [];
  const atForge = pullRequestOf(task);
  if (atForge?.state === 'publishing' && atForge.waits_for === 'person')
    return [step(`publish ${id}`, 'publish them again')];
  if (atForge !== null) return [step(`pr ${id}`, 'how its pull request stands')];
  const update = step(`update ${id}`, 'go on with it on your branch as it is now');
  const refused = work?.merge?.updatable ? [update] : [];
  return [...refused, step(`merge ${id}`, 'take them')];
};

/** Commands with which a person goes on from here, and what each does. */
export const nextSteps = ({
  task_id: id,
  status,
  phase,
  labels,
  attempt,
  awaiting,
  role,
  ready,
  work,
  parked_until: parked,
  parked_reason: reason,
  held_by: holder,
  pull_request,
}: TaskView): readonly string[] => {
  const step = (command: string, does: string): string => `  agent ${command.padEnd(18)}  ${does}`;
  if (awaiting !== undefined) return [step(`respond ${id}`, 'answer')];
  if (parked !== undefined)
    return [
      budgetInReason(reason) === null
        ? step(`retry ${id}`, 'try now')
        : `  ${goOnWords(id, reason)}`,
      step(`cancel ${id}`, 'give it up'),
    ];
  if (holder !== undefined) return [step(`reopen ${id}`, 'release it')];
  if (status === 'started') return [step(`logs -f ${id}`, 'watch')];
  if (phase === 'waiting_for_person') return personsSteps(id, labels, step);
  if (status === 'queued' && ready) return [step(`${role ?? 'engineer'} ${id}`, 'run')];
  if (status === 'queued') return [step(`explain ${id}`, 'why it waits')];
  if (attempt === 0) return [];
  const again = step(`retry ${id}`, 'try again');
  const changes = work === undefined ? [] : [step(`diff ${id}`, 'see the changes')];
  if (status === 'complete')
    return [...changes, ...completeSteps({ task_id: id, status, work, pull_request }, step)];
  return status === 'failed' || status === 'cancelled'
    ? [step(`logs ${id}`, 'what happened'), ...changes, again]
    : [];
};
