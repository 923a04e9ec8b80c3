import type { TaskId } from '../../../machines/task.ts';
import type { StatusWrites } from '../port.ts';
import { asArgument } from './argument.ts';
import { bdUnavailable } from './calls.ts';
import { unmetIn } from './issues.ts';
import {
  type BdWrites,
  failureOfWrite,
  isOpenAndUnassigned,
  noRefusal,
  refuseUnmet,
} from './writes.ts';

const createRelease =
  (writes: BdWrites, actor: string): StatusWrites['release'] =>
  async (id, label, fence) => {
    await writes.change(
      id,
      async (run, issue) => {
        const theirs = issue.assignee !== null && issue.assignee !== actor;
        if (theirs || !['open', 'in_progress'].includes(issue.status)) return noRefusal;
        if (!isOpenAndUnassigned(issue))
          await writes.update(
            run,
            id,
            ['--status=open', '--assignee='],
            isOpenAndUnassigned,
            'released',
          );
        await writes.removeEndLabels(run, id, issue.labels, label);
        if (label !== null && !issue.labels.includes(label))
          await writes.label(run, 'add', id, label);
        return noRefusal;
      },
      fence,
    );
  };

const createClose =
  (writes: BdWrites): StatusWrites['close'] =>
  (id, reason, fence) =>
    writes.change(
      id,
      async (run, issue) => {
        // Closing again would replace the first time and reason.
        if (issue.status === 'closed') return noRefusal;
        const unmet = unmetIn(issue);
        if (unmet.length > 0) return refuseUnmet(id, unmet);
        await writes.removeEndLabels(run, id, issue.labels);
        const answer = await run({
          args: ['close', '--json', `--reason=${asArgument(reason)}`, writes.by, '--', id],
          effect: 'repeat',
        });
        if (await writes.shows(run, answer, id, ({ status }) => status === 'closed'))
          return noRefusal;
        const failure = failureOfWrite(answer, 'closed');
        if (failure.kind !== 'blocked') throw bdUnavailable(failure);
        return refuseUnmet(
          id,
          (failure.about ?? '').split(/[\s,]+/).filter((text) => text !== '') as TaskId[],
        );
      },
      fence,
    );

const createReopen =
  (writes: BdWrites): StatusWrites['reopen'] =>
  (id, fence) =>
    writes.change(
      id,
      async (run, issue) => {
        if (issue.status === 'closed') {
          const answer = await run({
            args: ['reopen', '--json', writes.by, '--', id],
            effect: 'repeat',
          });
          if (!(await writes.shows(run, answer, id, ({ status }) => status === 'open')))
            throw bdUnavailable(failureOfWrite(answer, 'open'));
        }
        if (issue.assignee !== null || !['open', 'closed'].includes(issue.status))
          await writes.update(
            run,
            id,
            ['--status=open', '--assignee='],
            isOpenAndUnassigned,
            'open and free',
          );
        await writes.removeEndLabels(run, id, issue.labels);
        return noRefusal;
      },
      fence,
    );

/** Each method repeats only what is not visible yet. */
export const createBdStatusChanges = (
  writes: BdWrites,
  actor: string,
): Omit<StatusWrites, 'claim'> => ({
  release: createRelease(writes, actor),
  close: createClose(writes),
  reopen: createReopen(writes),
});
