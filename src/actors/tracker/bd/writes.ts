import { type Refusal, refusal } from '../../../machines/errors.ts';
import type { Acceptance } from '../../../machines/task/task-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import { holderOf, type TrackedTask } from '../../../machines/tracked-task.ts';
import { endLabels } from '../../ledger/issue.ts';
import type { Fence } from '../port.ts';
import type { BdAnswer } from './answer.ts';
import { type BdCalls, bdUnavailable, type RunBd } from './calls.ts';
import { type BdFailure, bdFailure } from './failure.ts';
import { type BdIssue, issuesIn, trackedFromBd, unmetIn } from './issues.ts';
import type { BdReads } from './reads.ts';

export const noRefusal: Acceptance = { refusal: null };
export const refuseWith = (given: Refusal): Acceptance => ({ refusal: given });
export const refuseMissing = (id: TaskId): Acceptance =>
  refuseWith(refusal('task_not_found', { task_id: id }));
export const refuseUnmet = (id: TaskId, unmet: readonly TaskId[]): Acceptance =>
  refuseWith(refusal('dependencies_unmet', { task_id: id, unmet }));

const behindFence =
  (run: RunBd, fence: Fence | undefined): RunBd =>
  async (call) => {
    fence?.();
    return run(call);
  };

type IssueCheck = (issue: BdIssue) => boolean;

export const isOpenAndUnassigned: IssueCheck = ({ status, assignee }) =>
  status === 'open' && assignee === null;

/** Changes of one issue. Success is what the answer or a second read shows, never the exit code. */
export interface BdWrites {
  /** `--actor=…`, for every call that changes something. */
  readonly by: string;
  /** Looks for the change in the answer, or, when bd failed or was unclear, in the issue itself. */
  shows(run: RunBd, answer: BdAnswer, id: TaskId, wanted: IssueCheck): Promise<boolean>;
  /**
   * `what` names the missing change in the error. @throws tracker_unavailable when `wanted` does
   * not show
   */
  update(
    run: RunBd,
    id: TaskId,
    flags: readonly string[],
    wanted: IssueCheck,
    what: string,
  ): Promise<void>;
  label(run: RunBd, verb: 'add' | 'remove', id: TaskId, text: string): Promise<void>;
  removeEndLabels(
    run: RunBd,
    id: TaskId,
    labels: readonly string[],
    kept?: string | null,
  ): Promise<void>;
  /** Runs `work` as one critical section on a fresh read of the issue. Refusal: task_not_found. */
  change(
    id: TaskId,
    work: (run: RunBd, issue: BdIssue) => Promise<Acceptance>,
    fence?: Fence,
  ): Promise<Acceptance>;
}

export const failureOfWrite = (answer: BdAnswer, what: string): BdFailure =>
  'failure' in answer
    ? answer.failure
    : bdFailure('unknown', `bd answered, but the task is not ${what}`);

export const createBdWrites = (calls: BdCalls, reads: BdReads, actor: string): BdWrites => {
  const by = `--actor=${actor}`;

  const shows: BdWrites['shows'] = async (run, answer, id, wanted) => {
    const rows = 'failure' in answer ? [] : issuesIn(answer.value, () => {});
    const row = rows.find((issue) => issue.id === id);
    if (row !== undefined && wanted(row)) return true;
    const now = await reads.show(run, id);
    return now !== null && wanted(now);
  };

  const label: BdWrites['label'] = async (run, verb, id, text) => {
    const answer = await run({
      args: ['label', verb, '--json', by, '--', id, text],
      effect: 'repeat',
    });
    if (!('failure' in answer)) return;
    const now = await reads.show(run, id);
    if (now?.labels.includes(text) !== (verb === 'add')) throw bdUnavailable(answer.failure);
  };

  return {
    by,
    shows,
    label,
    update: async (run, id, flags, wanted, what) => {
      const answer = await run({
        args: ['update', '--json', ...flags, by, '--', id],
        effect: 'repeat',
      });
      if (!(await shows(run, answer, id, wanted)))
        throw bdUnavailable(failureOfWrite(answer, what));
    },
    removeEndLabels: async (run, id, labels, kept = null) => {
      for (const text of labels.filter((each) => endLabels.includes(each) && each !== kept))
        await label(run, 'remove', id, text);
    },
    change: (id, work, fence) =>
      calls.alone('interactive', async (unfenced) => {
        const run = behindFence(unfenced, fence);
        try {
          const issue = await reads.show(run, id);
          return issue === null ? refuseMissing(id) : await work(run, issue);
        } finally {
          reads.wrote(null);
        }
      }),
  };
};

const conflict = (id: TaskId, holder: string): Acceptance =>
  refuseWith(refusal('tracker_conflict', { task_id: id, holder }));

const createMarks = (calls: BdCalls, reads: BdReads, writes: BdWrites, actor: string) => {
  const isOurs = ({ status, assignee }: Pick<BdIssue, 'status' | 'assignee'>): boolean =>
    status === 'in_progress' && assignee === actor;
  const mark = (run: RunBd, id: TaskId): Promise<void> =>
    writes.update(
      run,
      id,
      ['--status=in_progress', `--assignee=${actor}`],
      isOurs,
      'marked started',
    );

  const startByName = async (run: RunBd, id: TaskId): Promise<boolean> => {
    if (calls.isLacking('start')) return false;
    const answer = await run({ args: ['start', '--json', '--', id], effect: 'repeat' });
    if ('failure' in answer && answer.failure.kind === 'capability') {
      calls.lacks('start');
      return false;
    }
    const now = await reads.show(run, id);
    if (now?.status !== 'in_progress') return false;
    if (!isOurs(now)) await mark(run, id);
    return true;
  };

  const startByClaim = async (run: RunBd, id: TaskId): Promise<Acceptance> => {
    if (!calls.isLacking('claim')) {
      const answer = await run({
        args: ['update', '--json', '--claim', writes.by, '--', id],
        effect: 'repeat',
      });
      if (await writes.shows(run, answer, id, isOurs)) return noRefusal;
      const failure = failureOfWrite(answer, 'claimed');
      if (failure.kind === 'claimed') return conflict(id, failure.about ?? 'somebody');
      if (failure.kind === 'not_claimable')
        return conflict(id, `its ${failure.about ?? 'present'} state`);
      if (failure.kind === 'not_found') return refuseMissing(id);
      if (failure.kind !== 'capability') throw bdUnavailable(failure);
      calls.lacks('claim');
    }
    await mark(run, id);
    return noRefusal;
  };

  return { isOurs, startByName, startByClaim };
};

/**
 * Marks a task started. The check of blockers and the claim are one critical section, since bd
 * ignores blockers when it claims. Tries `bd start` first, which the specification names and no
 * known bd has, and remembers the answer; then `update --claim`, then the status.
 */
export const createClaim = (calls: BdCalls, reads: BdReads, writes: BdWrites, actor: string) => {
  const { isOurs, startByName, startByClaim } = createMarks(calls, reads, writes, actor);

  const lookAt = async (run: RunBd, id: TaskId): Promise<TrackedTask | null> => {
    const recent = reads.recent(id);
    if (recent !== null) return recent;
    const issue = await reads.show(run, id);
    return issue === null ? null : trackedFromBd(issue, { unmet: unmetIn(issue), ready: false });
  };

  const start = async (run: RunBd, id: TaskId): Promise<Acceptance> => {
    const task = await lookAt(run, id);
    if (task === null) return refuseMissing(id);
    if (isOurs(task)) return noRefusal;
    const holder = holderOf(task, actor);
    if (holder !== null) return conflict(id, holder);
    const unmet = task.unmet.length > 0 ? task.unmet : await reads.blockersOf(run, id);
    if (unmet.length > 0) return refuseUnmet(id, unmet);
    const verdict = (await startByName(run, id)) ? noRefusal : await startByClaim(run, id);
    if (verdict.refusal !== null) return verdict;
    await writes.removeEndLabels(run, id, task.labels);
    const labels = task.labels.filter((each) => !endLabels.includes(each));
    const updatedAt = new Date().toISOString();
    reads.wrote({
      ...task,
      status: 'in_progress',
      assignee: actor,
      ready: false,
      labels,
      updatedAt,
    });
    return noRefusal;
  };

  return (id: TaskId, fence?: Fence): Promise<Acceptance> =>
    calls.alone('interactive', async (run) => {
      try {
        return await start(behindFence(run, fence), id);
      } catch (error) {
        reads.wrote(null);
        throw error;
      }
    });
};
