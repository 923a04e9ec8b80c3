import { isDeepStrictEqual } from 'node:util';
import type {
  Checks,
  Published,
  PullRequestContext,
  PullRequestRules,
  Seen,
} from '../../../machines/pull-request/pull-request-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { Forge, ForgeComment, PullRequestStatus } from '../../forge/port.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { PublishSettings } from '../attempts/settings.ts';
import { commentsToTake, keysOf } from './feedback.ts';
import type { FindForge } from './forge-place.ts';
import { isOurs } from './landing.ts';
import type { Pulse, PulseNews } from './pulse.ts';
import { findTask, standOf } from './task-stand.ts';
import { createUntilNews } from './until-news.ts';

interface LookPorts {
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly settings: () => PublishSettings;
  readonly place: FindForge;
  readonly now: () => number;
  readonly workspace: Pick<Workspace, 'noteLanded'>;
  readonly stackedOn: StackedOn;
}

/** The branch of the one pull request that is open for what a task depends on; null: none, or several. */
export type StackedOn = (task: TaskView) => Promise<string | null>;

/** Comments as they were read last. */
export interface CommentsRead {
  readonly comments: readonly ForgeComment[];
  /** Epoch ms. */
  readonly readAt: number;
  /** When the pull request was first seen with its `updatedAt` (epoch ms). */
  readonly updatedSeenAt: number;
}

/** The last reading: only what changed since is read again. */
interface Known extends CommentsRead {
  readonly found: PullRequestStatus;
  /** Since when a check of this head has failed; null: none has. */
  readonly redSince: number | null;
  /** As of `StackedOn`. */
  readonly stack: string | null;
  /** The tasks that its task depends on. */
  readonly after: readonly string[];
}
export type KnownPullRequests = Map<TaskId, Known>;

/** Comments are read again after so long, also when the forge says that nothing changed. */
const commentsForMs = 300_000;
/** Times of a forge have whole seconds. */
const forgeTimesMs = 1_000;
/** So long, the checks beside a failed one are waited for. */
const otherChecksMs = 600_000;
/** A closed pull request is looked at so long: a person may open it again. */
const closedForMs = 7 * 24 * 3_600_000;
/** Failed checks that are kept by name. */
const redAtMost = 100;

const checksOf = (
  { checks }: PullRequestStatus,
  published: Published,
  now: number,
  waitMs: number,
): Checks => {
  const has = (state: 'red' | 'pending' | 'green'): boolean =>
    checks.some((check) => check.state === state);
  if (has('red')) return 'red';
  if (has('pending')) return 'pending';
  if (has('green')) return 'green';
  return now - published.at < waitMs ? 'pending' : 'none';
};

const baseOf = (
  { base: wish }: PullRequestContext,
  { base }: PullRequestStatus,
  stack: string | null,
): Seen['base'] => {
  if (wish !== null || (stack === null && !isOurs(base))) return 'own';
  return base === stack ? 'stacked' : 'other';
};

const rulesOf = ({
  onChecks,
  onComments,
  maxRounds,
  merge,
}: PublishSettings): PullRequestRules => ({ onChecks, onComments, maxRounds, merge });

/** Reads the comments again, unless nothing can have been written since they were read. */
export const readComments = async (
  forge: Pick<Forge, 'comments'>,
  found: Pick<PullRequestStatus, 'number' | 'updatedAt'>,
  before: (CommentsRead & { readonly found: Pick<PullRequestStatus, 'updatedAt'> }) | null,
  now: number,
  signal: AbortSignal,
): Promise<CommentsRead> => {
  const isSame = before !== null && before.found.updatedAt === found.updatedAt;
  const updatedSeenAt = isSame ? before.updatedSeenAt : now;
  if (isSame && now - before.readAt < commentsForMs) {
    const { comments, readAt } = before;
    // A second comment within one second leaves the time of the pull request as it is.
    if (readAt - updatedSeenAt >= forgeTimesMs) return { comments, readAt, updatedSeenAt };
  }
  return { comments: await forge.comments(found.number, signal), readAt: now, updatedSeenAt };
};

const toSeen = (
  { settings, now }: Pick<LookPorts, 'settings' | 'now'>,
  { context, published }: { context: PullRequestContext; published: Published },
  { found, comments, redSince, stack }: Known,
  task: Seen['task'],
): Seen => {
  const { state, headSha, draft, checks, review, mergeable, mergeCommit } = found;
  const red = checks.flatMap((check) => (check.state === 'red' ? [check.name] : []));
  const isPending = checks.some((check) => check.state === 'pending');
  return {
    state,
    headSha,
    draft,
    review,
    mergeable,
    task,
    rules: rulesOf(settings()),
    base: state === 'open' ? baseOf(context, found, stack) : 'own',
    checks: checksOf(found, published, now(), settings().checksWaitMs),
    red: red.slice(0, redAtMost),
    areOver: !isPending || now() - (redSince ?? now()) > otherChecksMs,
    said: keysOf(commentsToTake(comments, settings().authors, context)),
    ...(mergeCommit === undefined ? {} : { mergeCommit }),
  };
};

/** Looks at the forge when the pulse says that something moved, else at the task alone. */
export const createWatch = (ports: LookPorts, pulse: Pulse, known: KnownPullRequests) => {
  const { status, settings, place, now, workspace, stackedOn } = ports;

  const readForge = async (
    { taskId }: PullRequestContext,
    { number, attempt }: Published,
    view: TaskView | null,
    signal: AbortSignal,
  ): Promise<Known | null> => {
    const { forge } = await place(signal);
    const before = known.get(taskId) ?? null;
    const found = await forge.status(number, before?.found ?? null, signal);
    if (found === null) return null;
    const { state, headSha, checks, mergeCommit } = found;
    if (state === 'merged' && mergeCommit !== undefined)
      await workspace.noteLanded(taskId, attempt, mergeCommit);
    const isOpen = state === 'open';
    const read = isOpen
      ? await readComments(forge, found, before, now(), signal)
      : { comments: [], readAt: now(), updatedSeenAt: now() };
    const isRed = checks.some((check) => check.state === 'red');
    const ofHead = before?.found.headSha === headSha ? before : null;
    const redSince = isRed ? (ofHead?.redSince ?? now()) : null;
    const stack = view === null || !isOpen ? null : await stackedOn(view);
    return { found, ...read, redSince, stack, after: view?.dependencies ?? [] };
  };

  const look = async (
    context: PullRequestContext,
    published: Published,
    signal: AbortSignal,
    news: PulseNews,
  ): Promise<Seen> => {
    const { taskId } = context;
    const view = await findTask(status, taskId);
    const task = standOf(view, published);
    const last = known.get(taskId);
    if (news !== 'moved' && context.seen !== null && last !== undefined) {
      const stack = view === null ? null : await stackedOn(view);
      return toSeen(ports, { context, published }, { ...last, stack }, task);
    }
    try {
      const read = await readForge(context, published, view, signal);
      if (read !== null) {
        known.set(taskId, read);
        return toSeen(ports, { context, published }, read, task);
      }
    } catch (error) {
      pulse.forget(published.number);
      throw error;
    }
    const none = { checks: 'none', red: [], review: 'none', mergeable: 'unknown' } as const;
    const rest = { draft: false, areOver: true, said: [], base: 'own', task } as const;
    const { headSha } = published;
    return { state: 'gone', headSha, ...none, ...rest, rules: rulesOf(settings()) };
  };

  return createUntilNews(ports)<Seen>(
    async (context, signal, news) => {
      const { published, seen: before, problem } = context;
      if (published === null) throw new Error('it is published before it is looked at');
      if (before === null) pulse.hurry();
      const seen = await look(context, published, signal, news);
      const isOver = problem !== null && news !== 'task';
      if (isOver || !isDeepStrictEqual(seen, before)) return seen;
      const isOld = seen.state === 'closed' && now() - published.at > closedForMs;
      return isOld ? { ...seen, state: 'gone' } : null;
    },
    ({ seen, problem }) => seen !== null || problem !== null,
    ({ taskId, published, seen }, { ms, problem }, signal) => {
      const { number = 0 } = published ?? {};
      const notBefore = problem?.retryAt ?? null;
      const isEager = problem !== null || seen?.checks === 'pending' || seen?.areOver === false;
      return pulse.wait({ taskId, number, notBefore, isEager, pauseMs: ms }, signal);
    },
  );
};
