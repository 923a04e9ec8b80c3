import type { PullRequestView, TaskView } from '../../actors/journal/task-view.ts';
import { conflictWords } from '../../machines/conflict-words.ts';
import { budgetInReason, phaseInWords } from '../../machines/phase.ts';
import { oneLine } from '../output/safe-text.ts';
import { clockText } from '../output/times.ts';

/** The words of states, the same in every command. */

const longestWord = 30;

export const phaseWord = (phase: string): string => oneLine(phaseInWords(phase), longestWord);

/** `queued (ready)`, `started (thinking)`, `complete` */
export const statusWords = (status: string, phase: string): string => {
  const shown = oneLine(status, longestWord);
  return phase === status ? shown : `${shown} (${phaseWord(phase)})`;
};

/** Null for work that is not known, that changed nothing, or that only --force merges. */
export const mergeWord = (work: TaskView['work']): 'merged' | 'discarded' | 'not merged' | null => {
  if (work?.merged_at !== undefined) return 'merged';
  if (work?.discarded_at !== undefined) return 'discarded';
  if (work === undefined || work.files === 0 || work.incomplete) return null;
  return 'not merged';
};

/** The pull request that complete work waits for; null where it is over, or there is none. */
export const pullRequestOf = ({
  status,
  work,
  pull_request: found,
}: Pick<TaskView, 'status' | 'work' | 'pull_request'>): PullRequestView | null => {
  const isOver = ['merged', 'closed', 'abandoned'].includes(found?.state ?? '');
  return status !== 'complete' || isOver || work?.merged_at !== undefined ? null : (found ?? null);
};

/** `#12`, or what it is before it has a number. */
export const pullRequestName = ({ number }: PullRequestView): string =>
  number === undefined ? 'its pull request' : `#${number}`;

/** `you`, `the forge` */
export const waitsForWords = (waits: NonNullable<PullRequestView['waits_for']>): string =>
  ({
    checks: 'checks',
    review: 'a review',
    person: 'you',
    forge: 'the forge',
    limit: 'the end of a limit',
  })[waits];

const openWord = ({ checks, review, mergeable }: PullRequestView): string => {
  if (mergeable === 'conflicting') return 'conflicts';
  if (checks === 'red') return checks;
  if (review === 'changes') return 'changes asked';
  if (checks === 'pending') return checks;
  return review === 'approved' ? review : 'in review';
};

/** `PR #12 red`, `PR #12 merged`, `PR refused`; null where there is none. */
export const pullRequestWord = (found: TaskView['pull_request']): string | null => {
  if (found === undefined || found.state === 'abandoned') return null;
  const { number, state, waits_for: waits } = found;
  const name = number === undefined ? 'PR' : `PR #${number}`;
  if (state === 'publishing') return `${name} ${waits === 'person' ? 'refused' : 'publishing'}`;
  return `${name} ${state === 'open' ? openWord(found) : state}`;
};

/** A merge, an undo or an update of it waits, or is tested. */
export const isInQueue = (work: TaskView['work']): boolean =>
  work?.merge?.state === 'waiting' || work?.merge?.state === 'testing';

/** The work, as a clause: `its work is not merged: it fails together with bd-2 (landed): …` */
export const workWords = (work: TaskView['work']): string | null => {
  const word = mergeWord(work);
  const { state, message } = work?.merge ?? {};
  if (word === null) return null;
  const conflicts = work?.conflicts_with;
  const also = conflicts === undefined ? '' : `, and ${conflictWords(conflicts)}`;
  if (word === 'merged' && isInQueue(work)) return 'its undo is tested';
  if (word !== 'not merged' || state === undefined) return `its work is ${word}${also}`;
  if (state === 'refused') return `its work is not merged: ${message}`;
  return state === 'testing' ? (message ?? 'its merge is tested') : 'its work waits to be merged';
};

/** `merge refused`, `merge is tested`, `update is tested`, `waits to merge`, `will conflict` */
const mergeStateWord = (work: TaskView['work']): string => {
  switch (work?.merge?.state) {
    case 'refused':
      return 'merge refused';
    case 'testing':
      return (work.merge.message ?? 'its merge is tested').replace('its ', '');
    case 'waiting':
      return 'waits to merge';
    default:
      return work?.conflicts_with === undefined ? 'not merged' : 'will conflict';
  }
};

/** `parked until 14:30`; a budget of a run ends only by a person's word. */
export const parkedWords = (until: string, now: number, reason: string | undefined): string =>
  budgetInReason(reason) === 'run'
    ? 'parked by its budget'
    : `parked until ${clockText(until, now)}`;

/** How a parked task goes on before its time. */
export const goOnWords = (taskId: string, reason: string | undefined): string => {
  const budget = budgetInReason(reason);
  if (budget === null) return `to try now: agent retry ${taskId}`;
  return budget === 'run'
    ? `to go on: agent run ${taskId} --max-cost <usd>`
    : `to go on before: agent config set budget.${budget}_usd <usd>`;
};

/** `queued (ready)`, `complete (not merged)`, `complete (PR #12 red)`, `parked until 14:30` */
export const stateWords = (task: TaskView, now: number): string => {
  const { status, phase, ready, work, parked_until: parked } = task;
  if (parked !== undefined) return parkedWords(parked, now, task.parked_reason);
  if (task.held_by !== undefined) return `held by ${oneLine(task.held_by, longestWord)}`;
  const merge = status === 'complete' ? mergeWord(work) : null;
  if (merge === 'not merged' && !isInQueue(work))
    return `complete (${pullRequestWord(task.pull_request) ?? mergeStateWord(work)})`;
  if (merge === 'not merged') return `complete (${mergeStateWord(work)})`;
  if (merge === 'merged' && isInQueue(work)) return 'complete (undo is tested)';
  if (merge !== null) return `complete (${merge})`;
  return statusWords(status, phase === 'waiting_for_run' && !ready ? status : phase);
};
