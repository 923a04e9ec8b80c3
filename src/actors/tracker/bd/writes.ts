import { type Refusal, refusal } from '../../../machines/errors.ts';
import type { Acceptance } from '../../../machines/task/task-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import { endLabels } from '../../ledger/issue.ts';
import type { Fence } from '../port.ts';
import type { BdAnswer } from './answer.ts';
import { type BdCalls, bdUnavailable, type RunBd } from './calls.ts';
import { type BdFailure, bdFailure } from './failure.ts';
import { type BdIssue, issuesIn } from './issues.ts';
import type { BdReads } from './reads.ts';

export const noRefusal: Acceptance = { refusal: null };
export const refuseWith = (given: Refusal): Acceptance => ({ refusal: given });
export const refuseMissing = (id: TaskId): Acceptance =>
  refuseWith(refusal('task_not_found', { task_id: id }));
export const refuseUnmet = (id: TaskId, unmet: readonly TaskId[]): Acceptance =>
  refuseWith(refusal('dependencies_unmet', { task_id: id, unmet }));

export const behindFence =
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
