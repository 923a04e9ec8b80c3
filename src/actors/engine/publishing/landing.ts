import { isServiceError } from '../../../machines/errors.ts';
import type {
  MergeAnswer,
  Published,
  PullRequestContext,
  Updated,
} from '../../../machines/pull-request/pull-request-context.ts';
import { ForgeError, type HowToMerge } from '../../forge/port.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { TaskUpdates } from '../merging/update-task.ts';
import type { FindForge } from './forge-place.ts';
import { findTask, standOf } from './task-stand.ts';
import { forPerson } from './until-news.ts';

interface LandingPorts {
  readonly place: FindForge;
  readonly workspace: Pick<Workspace, 'fetch' | 'takeIn'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly update: TaskUpdates['update'];
  readonly method: () => HowToMerge['method'];
}

export const branchOf = ({ taskId }: Pick<PullRequestContext, 'taskId'>): string =>
  `agent/${taskId}/pr`;

export const isOurs = (branch: string): boolean => /^agent\/.+\/pr$/.test(branch);

/** Brings the commits of others on its branch into the work; `pushed`: what this server pushed last. */
export const createTakeIn =
  ({ place, workspace }: Pick<LandingPorts, 'place' | 'workspace'>) =>
  async (
    { taskId }: Pick<PullRequestContext, 'taskId'>,
    { attempt, headSha: pushed }: Pick<Published, 'attempt' | 'headSha'>,
    signal: AbortSignal,
  ): Promise<Pick<Published, 'headSha' | 'tree'>> => {
    const { url, token } = await place(signal);
    const branch = branchOf({ taskId });
    const commit = await workspace.fetch({ url, branch, token }, signal);
    if (commit === null)
      throw forPerson(
        `somebody removed the branch ${branch}; publish again to push it anew`,
        'gone',
      );
    const taken = await workspace.takeIn(taskId, attempt, { commit, pushed }, signal);
    if (taken?.status === 'taken') return { headSha: taken.commit, tree: taken.tree };
    throw forPerson(
      `${branch} has commits of others that cannot be brought into the work: ${taken?.why ?? 'there is none'}; merge the pull request with them, or delete that branch, then publish again`,
    );
  };

/**
 * The task went on without the work that was pushed; null: it did not. A review that asked for changes may
 * be the one of an update whose answer was lost: it counts as that, so that no round is ever left out.
 */
const wentOn = async (
  status: LandingPorts['status'],
  { taskId }: Pick<PullRequestContext, 'taskId'>,
  published: Published,
): Promise<'sent_back' | 'moved' | null> => {
  const task = await findTask(status, taskId);
  const stand = standOf(task, published);
  if (stand === 'same') return null;
  const isAnother = stand === 'busy' || stand === 'newer' || stand === 'failed';
  return isAnother && task?.review?.verdict === 'request_changes' ? 'sent_back' : 'moved';
};

/** Brings what is new on the base of the pull request into its work, and tests it. */
export const createUpdateToBase =
  ({ place, workspace, status, update }: LandingPorts) =>
  async (context: PullRequestContext, signal: AbortSignal): Promise<Updated> => {
    const { taskId, published } = context;
    if (published === null) return 'current';
    const before = await wentOn(status, context, published);
    if (before !== null) return before;
    const { forge, url, token } = await place(signal);
    const found = await forge.status(published.number, null, signal);
    if (found === null) return 'current';
    const { base } = found;
    const commit = await workspace.fetch({ url, branch: base, token }, signal);
    if (commit === null)
      throw forPerson(`its base ${base} was deleted: give it another one`, 'gone');
    try {
      const updated = await update(taskId, signal, { name: base, commit });
      const isPushed = updated.commit === undefined || updated.commit === published.headSha;
      // It was updated before, and the answer to that was lost.
      if (updated.status === 'current' && !isPushed) return 'updated';
      if (updated.status !== 'refused') return updated.status;
      throw forPerson(updated.message ?? `what is new on ${base} cannot be brought into it`);
    } catch (error) {
      // Somebody began something else with the task meanwhile.
      const after = isServiceError(error) ? await wentOn(status, context, published) : null;
      if (after === null) throw error;
      return after;
    }
  };

/** Merges the head that was seen, after its work passed the commands of the task on its base. */
export const createMerge = (ports: LandingPorts) => {
  const updateToBase = createUpdateToBase(ports);
  return async (context: PullRequestContext, signal: AbortSignal): Promise<MergeAnswer> => {
    const { published, seen } = context;
    const { forge } = await ports.place(signal);
    const found = published && (await forge.status(published.number, null, signal));
    if (published === null || found?.headSha !== published.headSha) return 'moved';
    if (found.state !== 'open') return 'moved';
    const updated = await updateToBase(context, signal);
    if (updated !== 'current') return updated;
    const whenItMay = seen?.rules.merge === 'queue';
    const how = { sha: published.headSha, method: ports.method(), whenItMay };
    try {
      await forge.merge(published.number, how, signal);
    } catch (error) {
      if (error instanceof ForgeError && error.fault === 'moved') return 'moved';
      throw error;
    }
    return whenItMay ? 'waits' : 'merged';
  };
};
