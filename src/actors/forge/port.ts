/** A repository at a forge (GitHub, Gitea), as its API shows it. All calls reject with `ForgeError` only. */
export interface Forge {
  /** For people: `github: acme/shop` */
  readonly name: string;
  /** Whose token it is, and what that may do. */
  about(signal: AbortSignal): Promise<ForgeAccess>;
  /** The branch that pull requests go to when nothing else is said. */
  defaultBranch(signal: AbortSignal): Promise<string>;
  /**
   * Opens a pull request for a branch that was pushed, or finds the newest of this head, open or not,
   * and brings title, text and base of an open one up to date. So an answer that was lost makes no second one.
   */
  publish(wanted: WantedPullRequest, signal: AbortSignal): Promise<PullRequest>;
  /**
   * Where a pull request is, with its checks and reviews for its head. `known`: the last answer; parts
   * that did not change since cost no request or a conditional one. Null: there is none any more.
   */
  status(
    number: number,
    known: PullRequestStatus | null,
    signal: AbortSignal,
  ): Promise<PullRequestStatus | null>;
  /**
   * Asks about many pull requests at once: a digest of each, which is another one when its head, checks,
   * reviews, comments, mergeability or state are. Null: this forge has no such request.
   */
  digests(
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, string> | null>;
  /** What people and reviewers said, the oldest first, at most `commentsAtMost`; ours have `ours`. */
  comments(number: number, signal: AbortSignal): Promise<readonly ForgeComment[]>;
  /** Answers a comment in its thread, or writes below the pull request, once for each `key`. */
  reply(number: number, reply: Reply, signal: AbortSignal): Promise<void>;
  /** The last lines of a check that failed, and its annotations; at most 20,000 characters. */
  failure(check: ForgeCheck, signal: AbortSignal): Promise<string>;
  /** Runs a check that failed again. @returns false where that cannot be asked for */
  rerun(check: ForgeCheck, signal: AbortSignal): Promise<boolean>;
  /** Writes our one comment with this key below a pull request or an issue, or changes its text. */
  note(number: number, note: Omit<Reply, 'to' | 'resolves'>, signal: AbortSignal): Promise<void>;
  /** Merges exactly this head. @throws ForgeError `moved` when the head is another one */
  merge(number: number, how: HowToMerge, signal: AbortSignal): Promise<void>;
  /**
   * Takes back a merge `whenItMay` that this account asked for, before another head is pushed: the
   * forge would merge that one, too. What a person asked for stays.
   */
  withdraw(number: number, signal: AbortSignal): Promise<void>;
  /** Closes it without merging. */
  close(number: number, signal: AbortSignal): Promise<void>;
  /** Open issues with all of these labels, the oldest first. */
  issues(labels: readonly string[], signal: AbortSignal): Promise<readonly ForgeIssue[]>;
  /** Counts the requests that were sent so far. */
  sent(): number;
  /** One that may have left the list. Null: it was deleted or transferred, or is a pull request. */
  issue(number: number, signal: AbortSignal): Promise<ForgeIssue | null>;
}

export interface ForgeAccess {
  readonly account: string;
  readonly mayPush: boolean;
  readonly archived: boolean;
}

export const commentsAtMost = 1_000;

export interface WantedPullRequest {
  /** A branch of the repository: `agent/bd-a1/pr` */
  readonly head: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
}

export interface PullRequest {
  readonly number: number;
  /** For people, in a browser. */
  readonly url: string;
  readonly state: 'open' | 'merged' | 'closed';
  readonly headSha: string;
  readonly base: string;
  readonly draft: boolean;
  /** RFC 3339; also of the last comment and review. */
  readonly updatedAt: string;
  /** `unknown`: the forge has not worked it out yet. */
  readonly mergeable: 'yes' | 'behind' | 'conflicting' | 'unknown';
  /** The commit of the base that has it. */
  readonly mergeCommit?: string;
}

export interface ForgeCheck {
  readonly id: string;
  readonly name: string;
  readonly state: 'pending' | 'red' | 'green';
  /** For people, in a browser. */
  readonly url?: string;
}

export interface PullRequestStatus extends PullRequest {
  /** Of the head: check runs and commit statuses; one of each name, the newest. */
  readonly checks: readonly ForgeCheck[];
  /** `none`: nobody with a say has decided; each person's last decision counts. */
  readonly review: 'none' | 'changes' | 'approved';
  /** For conditional requests; of no meaning to others. */
  readonly etags: Readonly<Record<string, string>>;
}

export interface ForgeComment {
  readonly id: string;
  /** `review`: the text of a review; `line`: beside a line of the diff; `plain`: below the pull request. */
  readonly kind: 'review' | 'line' | 'plain';
  readonly author: string;
  /** May push to the repository. */
  readonly canWrite: boolean;
  readonly isBot: boolean;
  /** Written by this server: it has our marker and our account. */
  readonly ours: boolean;
  readonly text: string;
  /** The words of a review that approves. */
  readonly approves?: true;
  readonly path?: string;
  readonly line?: number;
  /** RFC 3339. */
  readonly at: string;
}

export interface Reply {
  /** Null: below the pull request. */
  readonly to: Pick<ForgeComment, 'id' | 'kind'> | null;
  readonly text: string;
  /** Is in the marker of what we write: a second one with it is none. */
  readonly key: string;
  /** The thread of a line is resolved after it, where the forge lets this token do that. */
  readonly resolves?: boolean;
}

export interface HowToMerge {
  readonly sha: string;
  readonly method: 'squash' | 'merge' | 'rebase';
  /** The forge merges it by itself when its rules allow (auto-merge, merge queue). */
  readonly whenItMay: boolean;
}

export interface ForgeIssue {
  readonly number: number;
  /** Its page. It has the name of the repository that was asked for, also after another was given. */
  readonly url: string;
  readonly title: string;
  readonly text: string;
  readonly labels: readonly string[];
  /** Its title. */
  readonly milestone: string | null;
  readonly state: 'open' | 'done' | 'not_planned';
  /** Numbers of issues of the same repository that block it. */
  readonly blockedBy: readonly number[];
  /** RFC 3339. */
  readonly updatedAt: string;
}

/**
 * `limit`: until `retryAt` (epoch ms) nothing is answered. `right`: the token lacks what the message names.
 * `token`: it is not accepted. `gone`: no such repository, branch or pull request, or not for this token.
 * `moved`: the head is not the one that was named. `refused`: a rule of the forge. `away`: it did not
 * answer, or failed; again later.
 */
export type ForgeFault = 'limit' | 'right' | 'token' | 'gone' | 'moved' | 'refused' | 'away';

/** Its message says what to do, and holds no token. */
export class ForgeError extends Error {
  override readonly name = 'ForgeError';
  readonly fault: ForgeFault;
  readonly retryAt: number | null;

  constructor(fault: ForgeFault, message: string, retryAt: number | null = null) {
    super(message);
    this.fault = fault;
    this.retryAt = retryAt;
  }
}
