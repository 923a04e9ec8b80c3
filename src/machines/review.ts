export const verdicts = ['comment', 'request_changes', 'approve'] as const;
export type ReviewVerdict = (typeof verdicts)[number];

/** A person's remark on lines of the changes, as it is given. */
export interface NewComment {
  /** Inside the project. */
  readonly path: string;
  /** From 1, in the changed file; null: the whole file. */
  readonly line: number | null;
  /** The last line of a range; null: one line. */
  readonly endLine: number | null;
  readonly text: string;
  /** What it is at a forge: `line:123`. The same is not taken twice. */
  readonly source?: string;
}

export interface ReviewComment extends NewComment {
  /** From 1 in each task. */
  readonly id: number;
  /** The attempt whose changes it is about. */
  readonly attempt: number;
  /** True until an attempt that got it is complete, or the work is approved. */
  readonly isOpen: boolean;
  /** The agent's answer; null without one. */
  readonly answer: string | null;
  /** The attempt that got it and is complete; null while it is open. */
  readonly answeredBy: number | null;
}

/** A branch of a forge, at a commit that is in the repository. */
export interface Onto {
  readonly name: string;
  readonly commit: string;
}

/**
 * Why the work of an attempt is not on the project's branch. The next attempt starts on that branch, with
 * the work on top.
 */
export interface Rework {
  readonly why: string;
  /** The command that fails with the work on the branch, and the end of its output. */
  readonly failed?: { readonly command: string; readonly output: string };
  /**
   * The queue of merges sent it back as often in a row, and merges the result without a further word. 0: a
   * person asked for it.
   */
  readonly round: number;
  /** Absent: the project's branch. */
  readonly onto?: Onto;
}

/** Remarks of people on the work of a task. JSON, so that it persists. */
export interface Review {
  readonly verdict: ReviewVerdict;
  /** The attempt that the next one goes on with; null when no changes are requested. */
  readonly continues: number | null;
  readonly comments: readonly ReviewComment[];
  /** Set when the next attempt goes on with work that was not merged. */
  readonly rework?: Rework;
}

export interface ReviewCommand {
  readonly type: 'review';
  readonly verdict: ReviewVerdict;
  /** Null: the latest. */
  readonly attempt: number | null;
  readonly comments: readonly NewComment[];
  /** For the attempt that follows a request for changes. */
  readonly maxRetries: number;
  readonly rework?: Rework;
}

/** An agent's answer to one comment. */
export interface CommentAnswer {
  readonly comment: number;
  readonly answer: string;
}

/** The part of a review that an attempt gets. */
export interface ReviewedWork {
  /** The earlier attempt whose branch it goes on with; null: its branch begins anew. */
  readonly continues: number | null;
  /** Open: the attempt answers each. */
  readonly comments: readonly ReviewComment[];
  readonly rework?: Rework;
}

/** Older comments that are answered are dropped. */
export const mostComments = 100;

/** Absent when a review asks nothing of the next attempt. */
export const reviewedWork = (review: Review | undefined): { readonly review?: ReviewedWork } => {
  const comments = review?.comments.filter(({ isOpen }) => isOpen) ?? [];
  const continues = review?.continues ?? null;
  if (continues === null && comments.length === 0) return {};
  const rework = review?.rework;
  return { review: { continues, comments, rework } };
};

/** A place in the changes: `src/a.js:12-14`. A comment on the project's folder is about all. */
export const commentPlace = ({ path, line, endLine }: NewComment): string =>
  [
    path === '.' ? 'all changes' : path,
    ...(line === null ? [] : [`:${line}`]),
    ...(endLine === null ? [] : [`-${endLine}`]),
  ].join('');

const withoutOldest = (comments: readonly ReviewComment[]): readonly ReviewComment[] => {
  const extra = comments.length - mostComments;
  if (extra <= 0) return comments;
  const old = new Set(comments.filter(({ isOpen }) => !isOpen).slice(0, extra));
  return comments.filter((comment) => !old.has(comment));
};

export const addReview = (
  review: Review | undefined,
  { verdict, attempt, comments, rework }: ReviewCommand,
  latest: number,
): Review => {
  const before = review?.comments ?? [];
  const first = (before.at(-1)?.id ?? 0) + 1;
  const isOpen = verdict !== 'approve';
  const about = attempt ?? latest;
  const known = new Set(before.map(({ source }) => source));
  const isNew = ({ source }: NewComment): boolean => source === undefined || !known.has(source);
  const added = comments.filter(isNew).map((comment, at) => ({
    ...comment,
    id: first + at,
    attempt: about,
    isOpen,
    answer: null,
    answeredBy: null,
  }));
  const kept = isOpen ? before : before.map((comment) => ({ ...comment, isOpen: false }));
  const goesOn = verdict === 'request_changes' ? about : (review?.continues ?? null);
  const next = verdict === 'comment' ? review?.rework : rework;
  return {
    verdict,
    continues: isOpen ? goesOn : null,
    comments: withoutOldest([...kept, ...added]),
    rework: next,
  };
};

/** The review of work that the queue of merges sends back. */
export const sentBack = (review: Review | undefined, attempt: number, rework: Rework): Review =>
  addReview(
    review,
    { type: 'review', verdict: 'request_changes', attempt, comments: [], maxRetries: 0, rework },
    attempt,
  );

/** The review after a complete attempt, which got the open comments. */
export const endReview = (
  review: Review,
  attempt: number,
  answers: readonly CommentAnswer[],
): Review => ({
  ...review,
  continues: null,
  rework: undefined,
  comments: review.comments.map((comment) =>
    comment.isOpen
      ? {
          ...comment,
          isOpen: false,
          answer: answers.find((each) => each.comment === comment.id)?.answer ?? null,
          answeredBy: attempt,
        }
      : comment,
  ),
});

export const unanswered = (
  comments: readonly number[],
  answers: readonly CommentAnswer[],
): readonly number[] => comments.filter((id) => !answers.some(({ comment }) => comment === id));
