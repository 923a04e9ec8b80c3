import { isServiceError } from '../../../machines/errors.ts';
import type {
  MergeAnswer,
  Published,
  PullRequestContext,
  Updated,
} from '../../../machines/pull-request/pull-request-context.ts';
import { ForgeError, type HowToMerge } from '../../forge/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { TaskUpdates } from '../merging/update-task.ts';
import type { FindForge } from './forge-place.ts';
import { forPerson } from './until-news.ts';

interface LandingPorts {
  readonly place: FindForge;
  readonly workspace: Pick<Workspace, 'fetch' | 'takeIn'>;
  readonly update: TaskUpdates['update'];
  readonly method: () => HowToMerge['method'];
}

export const branchOf = ({ taskId }: Pick<PullRequestContext, 'taskId'>): string =>
  `agent/${taskId}/pr`;

export const isOurs = (branch: string): boolean => /^agent\/.+\/pr$/.test(branch);

/** Brings the commits of others on its branch into the work. */
export const createTakeIn =
  ({ place, workspace }: Pick<LandingPorts, 'place' | 'workspace'>) =>
  async (
    context: PullRequestContext,
    attempt: number,
    signal: AbortSignal,
  ): Promise<Pick<Published, 'headSha' | 'tree'>> => {
    const { taskId, published } = context;
    const { url, token } = await place(signal);
    const branch = branchOf(context);
    const commit = await workspace.fetch({ url, branch, token }, signal);
    if (commit === null)
      throw forPerson(
        `somebody removed the branch ${branch}; publish again to push it anew`,
        'gone',
      );
    const pushed = published?.headSha ?? commit;
    const taken = await workspace.takeIn(taskId, attempt, { commit, pushed }, signal);
    if (taken?.status === 'taken') return { headSha: taken.commit, tree: taken.tree };
    throw forPerson(
      `${branch} has commits of others that cannot be brought into the work: ${taken?.why ?? 'there is none'}; merge the pull request with them, or delete that branch, then publish again`,
    );
  };

/** Brings what is new on the base of the pull request into its work, and tests it. */
export const createUpdateToBase =
  ({ place, workspace, update }: LandingPorts) =>
  async ({ taskId, published }: PullRequestContext, signal: AbortSignal): Promise<Updated> => {
    if (published === null) return 'current';
    const { forge, url, token } = await place(signal);
    const found = await forge.status(published.number, null, signal);
    if (found === null) return 'current';
    const { base } = found;
    const commit = await workspace.fetch({ url, branch: base, token }, signal);
    if (commit === null)
      throw forPerson(`its base ${base} was deleted: give it another one`, 'gone');
    try {
      const updated = await update(taskId, signal, { name: base, commit });
      if (updated.status !== 'refused') return updated.status;
      throw forPerson(updated.message ?? `what is new on ${base} cannot be brought into it`);
    } catch (error) {
      // Somebody began something else with the task.
      if (isServiceError(error) && error.code === 'event_not_allowed') return 'current';
      throw error;
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
