import { conflictWords } from '../../src/machines/conflict-words.ts';
import { budgetInReason, phaseInWords } from '../../src/machines/phase.ts';
import type { Activity, PullRequest, Tasks, TaskView } from '../data/tasks.ts';
import type { IconName } from '../parts/icon.tsx';
import { age, causeIn, clock, numbered, oneLine } from './format.ts';

export type Tone = 'wait' | 'work' | 'need' | 'fail' | 'rev' | 'done';
export type Column = 'dependency' | 'slot' | 'working' | 'needs' | 'review' | 'forge' | 'done';

/** How a task looks: its column on the board, its icon, its colour, its word. */
export interface Look {
  readonly column: Column;
  readonly icon: IconName;
  readonly tone: Tone;
  readonly word: string;
}

const look = (column: Column, icon: IconName, tone: Tone, word: string): Look => ({
  ...{ column, icon, tone, word },
});

const sentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}`;

/** The words are those of the command line. */
const inPhase = (phase: string, column: Column, icon: IconName, tone: Tone) =>
  [phase, look(column, icon, tone, sentence(phaseInWords(phase)))] as const;

const phases: Readonly<Record<string, Look>> = Object.fromEntries([
  inPhase('waiting_for_run', 'slot', 'circle', 'wait'),
  inPhase('waiting_for_person', 'needs', 'question', 'need'),
  inPhase('waiting_for_dependencies', 'dependency', 'dashed', 'wait'),
  inPhase('waiting_for_slot', 'slot', 'clock', 'wait'),
  inPhase('waiting_for_tracker', 'slot', 'pause', 'wait'),
  inPhase('backing_off', 'slot', 'pause', 'wait'),
  inPhase('preparing', 'working', 'quarter', 'work'),
  inPhase('closing', 'working', 'quarter', 'work'),
  inPhase('thinking', 'working', 'dots', 'work'),
  inPhase('acting', 'working', 'prompt', 'work'),
  inPhase('verifying', 'working', 'verify', 'work'),
  inPhase('awaiting_input', 'needs', 'question', 'need'),
  inPhase('awaiting_approval', 'needs', 'shield', 'need'),
  inPhase('cancelling', 'working', 'struck', 'wait'),
]);

/** Of a task that waits for a person: it asks whether a step of a workflow is done. */
export const asksForStep = (labels: readonly string[]): boolean =>
  labels.some((label) => label.startsWith('question:'));

/** Saved changes of an attempt that is over, neither merged nor discarded. */
export const hasOpenWork = ({ status, work }: TaskView): boolean =>
  (status === 'complete' || status === 'failed' || status === 'cancelled') &&
  work?.branch !== undefined &&
  work.merged_at === undefined &&
  work.discarded_at === undefined;

const overAtForge: ReadonlySet<string> = new Set(['merged', 'closed', 'abandoned']);

/** The pull request that complete work waits for; null where it is over, or there is none. */
export const pullRequestOf = (task: TaskView): PullRequest | null => {
  const { status, work, pull_request: found } = task;
  const isOpen = found !== undefined && !overAtForge.has(found.state);
  return status === 'complete' && isOpen && work?.merged_at === undefined ? found : null;
};

/** Complete, with changes that a person can merge here and that nobody has merged. */
export const isToReview = (task: TaskView): boolean =>
  task.status === 'complete' &&
  task.pull_request?.state !== 'merged' &&
  pullRequestOf(task) === null &&
  hasMergeable(task);

const hasMergeable = ({ work }: TaskView): boolean =>
  work !== undefined &&
  work.files > 0 &&
  work.merged_at === undefined &&
  work.discarded_at === undefined &&
  work.incomplete !== true;

const ended = (task: TaskView): Look => {
  if (task.status === 'failed') {
    const verify = task.error?.code === 'verify_failed';
    return look('needs', 'cross', 'fail', verify ? 'Verify failed' : 'Failed');
  }
  if (task.status === 'cancelled') return look('done', 'struck', 'wait', 'Cancelled');
  const merge = merges[task.work?.merge?.state ?? ''];
  if (merge === merging) return merging;
  const pullRequest = pullRequestOf(task);
  if (pullRequest !== null) return atForge(pullRequest);
  if (isToReview(task)) return merge ?? toReview;
  const isMerged = task.pull_request?.state === 'merged';
  const { merged_at: merged, discarded_at: discarded } = task.work ?? {};
  return look(
    'done',
    'check',
    'done',
    merged || isMerged ? 'Merged' : discarded ? 'Discarded' : 'Done',
  );
};

/** What a person has to do about it, the first that holds. */
const atForge = ({ state, checks, review, mergeable, waits_for: waits }: PullRequest): Look => {
  if (waits !== 'person')
    return state === 'publishing'
      ? look('forge', 'clock', 'wait', 'Publishing')
      : look('forge', 'pull', 'rev', 'In review');
  if (state === 'publishing') return look('needs', 'cross', 'fail', 'Not published');
  if (mergeable === 'conflicting') return look('needs', 'pull', 'fail', 'Conflicts');
  if (checks === 'red') return look('needs', 'cross', 'fail', 'Checks failed');
  if (review === 'changes') return look('needs', 'pencil', 'need', 'Changes asked for');
  return look('needs', 'pull', 'need', review === 'approved' ? 'Approved' : 'Pull request');
};

const toReview = look('review', 'merge', 'rev', 'Ready to merge');
const merging = look('working', 'verify', 'work', 'Merging');
const merges: Readonly<Record<string, Look>> = {
  waiting: merging,
  testing: merging,
  refused: look('needs', 'merge', 'fail', 'Merge refused'),
};

export const lookOf = (task: TaskView): Look => {
  const { status, phase } = task;
  if (status === 'complete' || status === 'failed' || status === 'cancelled') return ended(task);
  if (task.awaiting !== undefined)
    return phases[task.awaiting.kind === 'input' ? 'awaiting_input' : 'awaiting_approval'] ?? other;
  if (task.parked_until !== undefined)
    return budgetInReason(task.parked_reason) === null ? parked : overBudget;
  // The pause between two tries of a model call; the attempt keeps its slot.
  if (status === 'started' && phase === 'backing_off') return pausing;
  // A task that is checked before it gets a slot works on nothing yet.
  if (status === 'queued' && phase === 'preparing') return phases['waiting_for_slot'] ?? other;
  if (phase === 'waiting_for_run' && !task.ready) return queued;
  return phases[phase] ?? (status === 'queued' || status === 'started' ? other : unknown(status));
};
const parked = look('slot', 'pause', 'wait', 'Parked');
/** A person raises the budget, or waits for another day. */
const overBudget = look('needs', 'pause', 'need', 'Over budget');
const queued = look('slot', 'circle', 'wait', 'Queued');
const pausing = look('working', 'pause', 'work', 'Pausing');
const other = look('slot', 'circle', 'wait', 'Waiting');
const unknown = (status: string): Look => look('slot', 'circle', 'wait', oneLine(status));

/** In the queue of merges. */
export const isMerging = (task: TaskView): boolean => lookOf(task) === merging;

/** A person should look at it. */
export const needsYou = (task: TaskView): boolean => {
  const { column } = lookOf(task);
  return column === 'needs' || column === 'review';
};

const nameOf = (id: string, all: Tasks): string => {
  const found = all.get(id);
  return found === undefined ? id : `${id} (${lookOf(found).word.toLowerCase()})`;
};

const waitsFor = ({ unmet_dependencies: unmet }: TaskView, all: Tasks): string => {
  const shown = unmet.slice(0, 2).map((id) => nameOf(id, all));
  const more = unmet.length - shown.length;
  return `waits for ${shown.join(' and ')}${more > 0 ? ` and ${more} more` : ''}`;
};

/** A pause says why, and until when the task is parked. */
const pauseOf = (task: TaskView): string => {
  const { parked_until: until, parked_reason: reason } = task;
  const why = causeIn(
    reason ?? task.error?.message ?? task.activity ?? 'pauses before the next try',
  );
  if (budgetInReason(reason) === 'run')
    return `${why}; goes on with: agent run ${task.task_id} --max-cost <usd>`;
  return until === undefined ? why : `${why}; goes on at ${clock(Date.parse(until))}`;
};

const changesOf = ({ work }: TaskView): string => {
  if (work === undefined) return 'no changes';
  const { files, insertions, deletions } = work;
  const [added, removed] = [insertions, deletions].map((lines) => lines.toLocaleString('en'));
  return `${numbered(files, 'file')}, +${added} −${removed}`;
};

/** `#12: 1 check failed: ci/test` */
const whyAtForge = ({ number, state, reason }: PullRequest): string => {
  const name = number === undefined ? 'its pull request' : `#${number}`;
  return `${name}: ${reason ?? (state === 'publishing' ? 'it is pushed' : 'it is followed')}`;
};

const whyToReview = (task: TaskView): string => {
  const { state, message = '' } = task.work?.merge ?? {};
  if (state === 'refused') return `not merged: ${causeIn(message)}`;
  if (state === 'waiting') return 'waits in the queue of merges';
  return state === 'testing'
    ? message || 'its merge is tested'
    : `ready to merge: ${changesOf(task)}`;
};

const whyEnded = (task: TaskView): string => {
  if (task.status === 'failed') return causeIn(task.error?.message ?? 'the attempt failed');
  if (task.status === 'cancelled') return 'cancelled';
  const pullRequest = pullRequestOf(task);
  if (pullRequest !== null) return whyAtForge(pullRequest);
  const { state, number } = task.pull_request ?? {};
  if (state === 'merged') return `merged at the forge, #${number}`;
  if (isToReview(task))
    return `${whyToReview(task)}${state === 'closed' ? `; #${number} was closed` : ''}`;
  const at = task.work?.merged_at;
  if (at !== undefined && isMerging(task)) return 'its undo is tested';
  if (at !== undefined) return `merged, ${clock(Date.parse(at))}`;
  if (task.result !== undefined) return 'complete, nothing to merge';
  return task.close_reason === undefined
    ? 'closed by hand'
    : `closed by hand: ${causeIn(task.close_reason)}`;
};

const whyByPhase: Readonly<
  Record<string, (task: TaskView, activity: Activity | undefined, all: Tasks) => string>
> = {
  waiting_for_run: () => 'not asked to run',
  waiting_for_person: ({ labels }) =>
    asksForStep(labels) ? 'asks whether a step is done' : 'waits until you have done it',
  waiting_for_dependencies: (task, _, all) => waitsFor(task, all),
  waiting_for_slot: () => 'waits for a free slot',
  waiting_for_tracker: (task) => task.error?.message ?? 'the tracker cannot be used',
  backing_off: pauseOf,
  preparing: () => 'preparing the worktree',
  closing: () => 'writing the results',
  thinking: () => 'model call',
  acting: (task, activity) => activity?.tool ?? task.activity ?? 'tool call',
  verifying: () => 'runs the verify commands',
  cancelling: ({ status }) => (status === 'started' ? 'stops its processes' : 'does not start'),
};

/** The command of a call, or its arguments as they are. */
export const callText = (json: string): string => {
  try {
    const { command } = JSON.parse(json) as { command?: unknown };
    return typeof command === 'string' ? command : json;
  } catch {
    return json;
  }
};

/** The beginning of a question or a command. */
const whyAtMost = 400;

const wholeWhy = (task: TaskView, activity: Activity | undefined, all: Tasks): string => {
  const { awaiting } = task;
  if (awaiting !== undefined) {
    const [call] = awaiting.calls;
    return awaiting.kind === 'input'
      ? `asks: ${awaiting.question.replace(/^#+ |\*\*|`/gm, '')}`
      : `asks permission: ${call === undefined ? awaiting.question : callText(call.arguments)}`;
  }
  if (task.status === 'complete' || task.status === 'failed' || task.status === 'cancelled')
    return whyEnded(task);
  return whyByPhase[task.phase]?.(task, activity, all) ?? task.phase;
};

/** One sentence: why the task is where it is. */
export const whyOf = (task: TaskView, activity: Activity | undefined, all: Tasks): string => {
  const why = wholeWhy(task, activity, all);
  const shown = why.length > whyAtMost ? `${why.slice(0, whyAtMost)} …` : why;
  const conflicts = task.work?.conflicts_with;
  return oneLine(conflicts === undefined ? shown : `${shown}; ${conflictWords(conflicts)}`);
};

/** When a question was asked, also over restarts, or when the task changed last (epoch ms). */
export const sinceOf = ({ waits_since: asked, updated_at: changed }: TaskView): number =>
  Date.parse(asked ?? changed);

/** Since the last sign of life of a live attempt, its question, or the last change. */
export const ageOf = (task: TaskView, activity: Activity | undefined, at: number): string =>
  age(
    at - (task.awaiting === undefined ? Math.max(activity?.at ?? 0, sinceOf(task)) : sinceOf(task)),
  );

/** `turn 3/50` of a live attempt, else `3 turns`. */
export const turnsOf = ({ usage, status, max_turns: most }: TaskView): string =>
  status === 'started'
    ? `turn ${usage.turns}${most === undefined ? '' : `/${most}`}`
    : numbered(usage.turns, 'turn');
