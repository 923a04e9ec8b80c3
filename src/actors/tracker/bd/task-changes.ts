import { refusal } from '../../../machines/errors.ts';
import { neededBy } from '../../ledger/edits.ts';
import { endLabels } from '../../ledger/issue.ts';
import { requireValidFields } from '../../ledger/new-issue.ts';
import type { TaskFields, TrackerWrites } from '../port.ts';
import { bdUnavailable, type RunBd } from './calls.ts';
import type { BdIssue } from './issues.ts';
import { blockersOf } from './issues.ts';
import type { BdReads } from './reads.ts';
import { type BdWrites, failureOfWrite, noRefusal, refuseWith } from './writes.ts';

const flagsFor = ({ title, description, priority }: TaskFields): readonly string[] => [
  ...(title === undefined ? [] : [`--title=${title}`]),
  ...(description === undefined ? [] : [`--description=${description}`]),
  ...(priority === undefined ? [] : [`--priority=${priority}`]),
];

const hasFields =
  ({ title, description, priority }: TaskFields) =>
  (issue: BdIssue): boolean =>
    (title === undefined || issue.title === title) &&
    (description === undefined || issue.description === description) &&
    (priority === undefined || issue.priority === priority);

/** Labels that say how an attempt ended stay. */
const setLabels = async (
  writes: BdWrites,
  run: RunBd,
  { id, labels: before }: BdIssue,
  wanted: readonly string[],
): Promise<void> => {
  const gone = before.filter((label) => !endLabels.includes(label) && !wanted.includes(label));
  for (const label of gone) await writes.label(run, 'remove', id, label);
  for (const label of wanted.filter((each) => !before.includes(each)))
    await writes.label(run, 'add', id, label);
};

export const createBdTaskChanges = (
  reads: BdReads,
  writes: BdWrites,
): Pick<TrackerWrites, 'edit' | 'remove'> => ({
  edit: async (id, fields) => {
    requireValidFields(fields);
    return writes.change(id, async (run, issue) => {
      const flags = flagsFor(fields);
      if (flags.length > 0 && !hasFields(fields)(issue))
        await writes.update(run, id, flags, hasFields(fields), 'edited');
      if (fields.labels !== undefined) await setLabels(writes, run, issue, fields.labels);
      return noRefusal;
    });
  },

  remove: (id) =>
    writes.change(id, async (run) => {
      const all = [...(await reads.listAll(run)).values()];
      const needing = all.filter(
        (each) => each.status !== 'tombstone' && blockersOf(each).includes(id),
      );
      const needed = neededBy(
        id,
        needing.map((each) => each.id),
      );
      if (needed !== null) return refuseWith(refusal('event_not_allowed', needed));
      const args = ['delete', '--json', '--force', writes.by, '--', id];
      const answer = await run({ args, effect: 'repeat' });
      const left = await reads.show(run, id);
      if (left === null || left.status === 'tombstone') return noRefusal;
      throw bdUnavailable(failureOfWrite(answer, 'deleted'));
    }),
});
