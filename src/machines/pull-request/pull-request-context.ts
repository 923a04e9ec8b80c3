import type { TaskId } from '../task.ts';

export type Checks = 'pending' | 'red' | 'green' | 'none';
export type Review = 'none' | 'changes' | 'approved';
export type Mergeable = 'yes' | 'behind' | 'conflicting' | 'unknown';

/** How people asked for it. */
export interface PublishWish {
  readonly draft: boolean;
  /** Null: the branch that the repository names. */
  readonly base: string | null;
}

export interface PullRequestInput extends PublishWish {
  readonly taskId: TaskId;
  readonly attempt: number;
}

/** What stands at the forge. */
export interface Published {
  readonly number: number;
  readonly url: string;
  readonly headSha: string;
  readonly tree: string;
  readonly attempt: number;
  /** Epoch ms. */
  readonly at: number;
}

/** `forge` of the configuration, as it was at a look. */
export interface PullRequestRules {
  readonly onChecks: 'fix' | 'ask' | 'ignore';
  readonly onComments: 'fix' | 'ask';
  readonly maxRounds: number;
  readonly merge: 'never' | 'when_green' | 'queue';
}

/** What a look found. */
export interface Seen {
  readonly state: 'open' | 'merged' | 'closed' | 'gone';
  readonly headSha: string;
  readonly draft: boolean;
  readonly checks: Checks;
  /** Names of the checks that failed. */
  readonly red: readonly string[];
  /** False while other checks may still fail. */
  readonly areOver: boolean;
  readonly review: Review;
  readonly mergeable: Mergeable;
  readonly mergeCommit?: string;
  /**
   * `own`: the branch that it goes to. `stacked`: that of the pull request it depends on, which lands
   * first. `other`: it is to be changed.
   */
  readonly base: 'own' | 'stacked' | 'other';
  /** Comments of people with a say that no attempt got. */
  readonly said: readonly string[];
  /**
   * `same`: it is complete, and its work is what was pushed. `newer`: another attempt is complete. `busy`:
   * another one is to come. `reopened`: a person opened it again, and has not run it yet. `unwanted`:
   * nobody wants its work any more.
   */
  readonly task: 'same' | 'newer' | 'busy' | 'reopened' | 'failed' | 'unwanted';
  readonly rules: PullRequestRules;
}

/** Why the forge did not do it. A person mends it, or it is tried again, at `retryAt` (epoch ms) or soon. */
export interface PullRequestProblem {
  readonly needs: 'person' | 'limit' | 'forge';
  /** What the forge said, in one word. */
  readonly fault?: string;
  readonly message: string;
  readonly retryAt: number | null;
}

/** A comment or a check that an attempt got. */
export interface Taken {
  readonly key: string;
  readonly attempt: number;
  /** The comment to answer; null for a check. */
  readonly to: { readonly id: string; readonly kind: 'review' | 'line' | 'plain' } | null;
  readonly isAnswered: boolean;
}

/** What checks said about a tree. */
export interface CheckedTree {
  readonly tree: string;
  /** They all passed on it once. */
  readonly green: boolean;
  /** Failed on it, and were run again or given to an attempt. */
  readonly red: readonly string[];
}

export interface PullRequestContext extends PullRequestInput {
  readonly published: Published | null;
  readonly seen: Seen | null;
  readonly problem: PullRequestProblem | null;
  /** How often somebody asked to publish it. */
  readonly asked: number;
  /** Attempts that the forge asked for. */
  readonly round: number;
  /** The newest last. */
  readonly taken: readonly Taken[];
  /** The newest last. */
  readonly trees: readonly CheckedTree[];
  /** A person wants the next attempt, whatever the rules say. */
  readonly fix: boolean;
  /** The state in which it was brought up to date or merged last, which need not be tried again in it. */
  readonly tried: string | null;
  /** Why a person has to mend something before it is tried again. */
  readonly refused?: PullRequestProblem | null;
}

/** What came of a request to the forge. The journal keeps it, so a problem is no error. */
export type Asked<Result> = { readonly done: Result } | { readonly problem: PullRequestProblem };

/** What the next attempt got; null: nothing, since its task went on without it. */
export interface GivenFeedback {
  readonly mended: Mended | null;
}

export interface Mended {
  readonly taken: readonly Taken[];
  /** Of the checks that failed. */
  readonly red: readonly string[];
}

/**
 * `updated`: commits of others were brought into the work, and it is pushed again. `sent_back`: another
 * attempt goes on with it. `moved`: its task went on without it.
 */
export type Updated = 'updated' | 'current' | 'sent_back' | 'moved';

/** `waits`: the forge merges it by itself. */
export type MergeAnswer = 'merged' | 'waits' | Exclude<Updated, 'current'>;

const takenAtMost = 1_000;
const treesAtMost = 20;

const entryOf = ({ trees }: PullRequestContext, tree: string): CheckedTree =>
  trees.find((each) => each.tree === tree) ?? { tree, green: false, red: [] };

const withTree = (
  { trees }: Pick<PullRequestContext, 'trees'>,
  next: CheckedTree,
): readonly CheckedTree[] =>
  [...trees.filter(({ tree }) => tree !== next.tree), next].slice(-treesAtMost);

const isAtRest = (seen: Seen | null): seen is Seen =>
  seen?.state === 'open' && seen.task === 'same';

const ownHead = ({ published, seen }: PullRequestContext): Published | null =>
  published !== null && seen?.headSha === published.headSha ? published : null;

/** A check that passed on the same tree before, and was not run again. */
export const isFlaky = (context: PullRequestContext): boolean => {
  const head = ownHead(context);
  const { seen } = context;
  if (head === null || !isAtRest(seen) || seen.checks !== 'red' || !seen.areOver) return false;
  if (seen.rules.onChecks !== 'fix') return false;
  const { green, red } = entryOf(context, head.tree);
  return green && seen.red.every((name) => !red.includes(name));
};

/** The same check failed on the same tree before: another attempt would change nothing. */
export const failsAgain = (context: PullRequestContext): boolean => {
  const head = ownHead(context);
  if (head === null || context.seen?.checks !== 'red') return false;
  const { red } = entryOf(context, head.tree);
  return context.seen.red.some((name) => red.includes(name));
};

/** Checks or comments want another attempt, by the rules or since a person said so. */
export const wantsAttempt = (context: PullRequestContext): boolean => {
  const { seen, round, fix } = context;
  if (!isAtRest(seen)) return false;
  const isRed = seen.checks === 'red' && seen.areOver;
  if (fix) return seen.checks === 'red' || seen.said.length > 0;
  if (round >= seen.rules.maxRounds) return false;
  const mends = isRed && seen.rules.onChecks === 'fix' && !failsAgain(context);
  return mends || (seen.said.length > 0 && seen.rules.onComments === 'fix');
};

/** The state that decides whether it is merged or brought up to date. */
export const stateKey = ({ seen }: PullRequestContext): string | null =>
  seen && [seen.headSha, seen.checks, seen.review, seen.mergeable, seen.draft].join(' ');

/** The refusal of its update or merge, while all is as it was then. */
export const refusalOf = (context: PullRequestContext): PullRequestProblem | null =>
  context.tried !== null && context.tried === stateKey(context) ? (context.refused ?? null) : null;

const isUntried = (context: PullRequestContext): boolean => context.tried !== stateKey(context);

/** It does not have what is new on its base, and the rules let the server mend that. */
export const isOutdated = (context: PullRequestContext): boolean => {
  const { seen, round } = context;
  if (!isAtRest(seen) || !isUntried(context)) return false;
  if (seen.rules.onChecks !== 'fix') return false;
  if (seen.mergeable === 'conflicting') return round < seen.rules.maxRounds;
  return seen.mergeable === 'behind';
};

/** What it depends on landed, or is published now. */
export const hasOtherBase = ({ seen }: PullRequestContext): boolean =>
  isAtRest(seen) && seen.base === 'other';

/** The forge was asked to merge this head when its rules allow. */
const isQueued = ({ tried, seen }: PullRequestContext): boolean =>
  seen?.rules.merge === 'queue' && tried?.startsWith(seen.headSha) === true;

/** All that people and checks said allows its merge by the server. */
export const mayMerge = (context: PullRequestContext): boolean => {
  const { seen } = context;
  if (!isAtRest(seen) || !isUntried(context)) return false;
  if (
    seen.base !== 'own' ||
    seen.rules.merge === 'never' ||
    seen.draft ||
    seen.review === 'changes'
  )
    return false;
  if (ownHead(context) === null || seen.said.length > 0 || isQueued(context)) return false;
  if (seen.rules.merge === 'queue') return seen.checks !== 'red' && seen.mergeable === 'yes';
  return (seen.checks === 'green' || seen.checks === 'none') && seen.mergeable === 'yes';
};

/** Somebody else pushed to its branch, while no attempt is at work. */
export const hasOthersCommits = (context: PullRequestContext): boolean =>
  isAtRest(context.seen) && context.published !== null && ownHead(context) === null;

/** Notes what checks said about the tree that was pushed. */
export const noteGreen = (context: PullRequestContext, seen: Seen): readonly CheckedTree[] => {
  const { published, trees } = context;
  if (published === null || seen.headSha !== published.headSha || seen.checks !== 'green')
    return trees;
  return withTree(context, { ...entryOf(context, published.tree), green: true });
};

/** Notes the checks that failed on the tree that was pushed. */
export const noteRed = (
  context: PullRequestContext,
  names: readonly string[],
): readonly CheckedTree[] => {
  const { published, trees } = context;
  if (published === null || names.length === 0) return trees;
  const entry = entryOf(context, published.tree);
  return withTree(context, { ...entry, red: [...new Set([...entry.red, ...names])] });
};

export const withTaken = (
  { taken }: PullRequestContext,
  more: readonly Taken[],
): readonly Taken[] => [...taken, ...more].slice(-takenAtMost);

/** Comments that an attempt got whose work is pushed now, and that have no answer yet. */
export const unanswered = ({ taken, published }: PullRequestContext): readonly Taken[] =>
  published === null
    ? []
    : taken.filter(({ isAnswered, attempt }) => !isAnswered && attempt <= published.attempt);
