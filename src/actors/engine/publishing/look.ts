import { isServiceError } from '../../../machines/errors.ts';
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

/** What was read last, so that only what changed is read again. */
interface Known {
  readonly found: PullRequestStatus;
  readonly comments: readonly ForgeComment[];
  /** When the comments were read (epoch ms). */
  readonly readAt: number;
  /** Since when a check of this head has failed; null: none has. */
  readonly redSince: number | null;
}
export type KnownPullRequests = Map<TaskId, Known>;

/** Comments are read again after so long, also when the forge says that nothing changed. */
const commentsForMs = 300_000;
/** So long, the checks beside a failed one are waited for. */
const otherChecksMs = 600_000;
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

const findTask = (status: LookPorts['status'], taskId: TaskId): Promise<TaskView | null> =>
  status(taskId).catch((error: unknown) => {
    if (isServiceError(error) && error.code === 'task_not_found') return null;
    throw error;
  });

/** The task, beside the attempt that was pushed. */
const standOf = (task: TaskView | null, { attempt }: Published): Seen['task'] => {
  if (task === null || task.status === 'cancelled') return 'unwanted';
  if (task.attempt === attempt && task.work?.discarded_at !== undefined) return 'unwanted';
  if (task.status === 'failed') return 'failed';
  if (task.status !== 'complete') return 'busy';
  return task.attempt > attempt ? 'newer' : 'same';
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

const readComments = async (
  forge: Forge,
  found: PullRequestStatus,
  before: Known | null,
  now: number,
  signal: AbortSignal,
): Promise<Pick<Known, 'comments' | 'readAt'>> => {
  const isKnown = before !== null && before.found.updatedAt === found.updatedAt;
  if (isKnown && now - before.readAt < commentsForMs) return before;
  return { comments: await forge.comments(found.number, signal), readAt: now };
};

/** Sees how a pull request stands at the forge, and its task here. */
export const createLook =
  ({ status, settings, place, now, workspace, stackedOn }: LookPorts, known: KnownPullRequests) =>
  async (context: PullRequestContext, published: Published, signal: AbortSignal): Promise<Seen> => {
    const { taskId } = context;
    const { forge } = await place(signal);
    const before = known.get(taskId) ?? null;
    const view = await findTask(status, taskId);
    const task = standOf(view, published);
    const rules = rulesOf(settings());
    const found = await forge.status(published.number, before?.found ?? null, signal);
    if (found === null) {
      const none = { checks: 'none', red: [], review: 'none', mergeable: 'unknown' } as const;
      const { headSha } = published;
      const rest = { draft: false, areOver: true, said: [], base: 'own', task, rules } as const;
      return { state: 'gone', headSha, ...none, ...rest };
    }
    const { state, headSha, draft, checks, review, mergeable, mergeCommit } = found;
    if (state === 'merged' && mergeCommit !== undefined)
      await workspace.noteLanded(taskId, published.attempt, mergeCommit);
    const stack = view === null || state !== 'open' ? null : await stackedOn(view);
    const read =
      state === 'open'
        ? await readComments(forge, found, before, now(), signal)
        : { comments: [], readAt: now() };
    const red = checks.flatMap((check) => (check.state === 'red' ? [check.name] : []));
    const ofHead = before?.found.headSha === headSha ? before : null;
    const redSince = red.length === 0 ? null : (ofHead?.redSince ?? now());
    known.set(taskId, { found, ...read, redSince });
    const isPending = checks.some((check) => check.state === 'pending');
    return {
      ...{ state, headSha, draft, review, mergeable, task, rules },
      base: state === 'open' ? baseOf(context, found, stack) : 'own',
      checks: checksOf(found, published, now(), settings().checksWaitMs),
      red: red.slice(0, redAtMost),
      areOver: !isPending || now() - (redSince ?? now()) > otherChecksMs,
      said: keysOf(commentsToTake(read.comments, settings().authors, context)),
      ...(mergeCommit === undefined ? {} : { mergeCommit }),
    };
  };
