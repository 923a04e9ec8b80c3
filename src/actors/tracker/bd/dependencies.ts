import { refusal } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import { isGating } from '../../ledger/issue.ts';
import type { TrackerWrites } from '../port.ts';
import { bdUnavailable } from './calls.ts';
import { type BdIssue, blockersOf } from './issues.ts';
import type { BdReads } from './reads.ts';
import { type BdWrites, failureOfWrite, noRefusal, refuseMissing, refuseWith } from './writes.ts';

/** The ids from `from` to `to` along blocking edges, for the message of a refused cycle. */
const blockingPath = (
  from: TaskId,
  to: TaskId,
  all: ReadonlyMap<string, BdIssue>,
): readonly TaskId[] => {
  const paths = new Map<TaskId, readonly TaskId[]>([[from, [from]]]);
  for (const [id, path] of paths) {
    if (id === to) return path;
    const issue = all.get(id);
    for (const next of issue === undefined ? [] : blockersOf(issue))
      if (!paths.has(next)) paths.set(next, [...path, next]);
  }
  return [from, to];
};

export const createBdDependencies = (
  reads: BdReads,
  writes: BdWrites,
): Pick<TrackerWrites, 'addDependency' | 'removeDependency'> => {
  const { by } = writes;
  return {
    addDependency: (dependent, prerequisite) =>
      writes.change(dependent, async (run, issue) => {
        if ((await reads.show(run, prerequisite)) === null) return refuseMissing(prerequisite);
        const depends = ({ edges }: BdIssue): boolean =>
          edges.some(({ to, type = 'blocks' }) => to === prerequisite && type === 'blocks');
        if (depends(issue)) return noRefusal;
        const args = ['dep', 'add', '--json', by, '--', dependent, prerequisite];
        const answer = await run({ args, effect: 'repeat' });
        // Another kind of edge between the two counts as a duplicate too; only a blocking edge is
        // enough.
        if (await writes.shows(run, answer, dependent, depends)) return noRefusal;
        if (!('failure' in answer))
          throw bdUnavailable(failureOfWrite(answer, `waiting for ${prerequisite}`));
        if (answer.failure.kind !== 'cycle') throw bdUnavailable(answer.failure);
        const cycle = [
          dependent,
          ...blockingPath(prerequisite, dependent, await reads.listAll(run)),
        ];
        return refuseWith(refusal('dependency_cycle', { cycle }));
      }),

    removeDependency: (dependent, prerequisite) =>
      writes.change(dependent, async (run, issue) => {
        if (!issue.edges.some((edge) => edge.to === prerequisite && isGating(edge)))
          return noRefusal;
        const args = ['dep', 'remove', '--json', by, '--', dependent, prerequisite];
        const answer = await run({ args, effect: 'repeat' });
        if (!('failure' in answer) || answer.failure.kind === 'not_found') return noRefusal;
        throw bdUnavailable(answer.failure);
      }),
  };
};
