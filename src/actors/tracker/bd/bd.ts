import { refusal } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import { isGating } from '../issue.ts';
import type { Tracker } from '../port.ts';
import { type BdCalls, bdUnavailable } from './calls.ts';
import { createClaim } from './claim.ts';
import { createCreate } from './create.ts';
import type { FailureKind } from './failure.ts';
import { type BdIssue, blockersOf, unmetIn } from './issues.ts';
import { createBdReads } from './reads.ts';
import {
  accepted,
  createBdWrites,
  failureOfWrite,
  isOpenAndUnassigned,
  refuseMissing,
  refuseUnmet,
  refuseWith,
} from './writes.ts';

export interface BdOptions {
  readonly calls: BdCalls;
  readonly projectRoot: string;
  /** Who claims; the same for every role. */
  readonly actor: string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** From `from` to `to` along what blocks; for the words of a refused cycle. */
const pathBetween = (from: TaskId, to: TaskId, all: ReadonlyMap<string, BdIssue>): readonly TaskId[] => {
  const paths = new Map<TaskId, readonly TaskId[]>([[from, [from]]]);
  for (const [id, path] of paths) {
    if (id === to) return path;
    const issue = all.get(id);
    for (const next of issue === undefined ? [] : blockersOf(issue))
      if (!paths.has(next)) paths.set(next, [...path, next]);
  }
  return [from, to];
};

const argumentLengthAtMost = 8_000;
/** Words of people as an argument: the kernel takes no NUL and no more than 128 KiB of it. */
const asArgument = (text: string): string => text.slice(0, argumentLengthAtMost).replaceAll('\0', '\uFFFD');

/** Failures of the tracker itself; all others are about one task. */
const trackerFailures: ReadonlySet<FailureKind> = new Set([
  ...(['absent', 'broken', 'not_initialized', 'stale', 'corrupt', 'newer', 'lock', 'crash'] as const),
  ...(['server_down', 'frozen', 'timeout', 'too_large'] as const),
]);

/** The tracker of a project that keeps its tasks in bd (facts/beads 9). */
export const createBdTracker = ({ calls, projectRoot, actor, log }: BdOptions): Tracker => {
  const reads = createBdReads(calls, projectRoot, log);
  const writes = createBdWrites(calls, reads, actor);
  const { by } = writes;

  return {
    name: 'bd',
    actor,
    find: reads.find,
    list: (urgency = 'interactive') => reads.list(urgency),
    create: createCreate(calls, reads, by),
    claim: createClaim(calls, reads, writes, actor),

    release: async (id, label, fence) => {
      await writes.change(
        id,
        async (run, issue) => {
          const theirs = issue.assignee !== null && issue.assignee !== actor;
          if (theirs || !['open', 'in_progress'].includes(issue.status)) return accepted;
          if (!isOpenAndUnassigned(issue))
            await writes.update(run, id, ['--status=open', '--assignee='], isOpenAndUnassigned, 'released');
          await writes.removeEndLabels(run, id, issue.labels, label);
          if (label !== null && !issue.labels.includes(label)) await writes.label(run, 'add', id, label);
          return accepted;
        },
        fence,
      );
    },

    close: (id, reason, fence) =>
      writes.change(
        id,
        async (run, issue) => {
          // Closing again would put another time and reason in the place of the first.
          if (issue.status === 'closed') return accepted;
          const unmet = unmetIn(issue);
          if (unmet.length > 0) return refuseUnmet(id, unmet);
          await writes.removeEndLabels(run, id, issue.labels);
          const answer = await run({
            args: ['close', '--json', `--reason=${asArgument(reason)}`, by, '--', id],
            effect: 'repeat',
          });
          if (await writes.shows(run, answer, id, ({ status }) => status === 'closed')) return accepted;
          const failure = failureOfWrite(answer, 'closed');
          if (failure.kind !== 'blocked') throw bdUnavailable(failure);
          return refuseUnmet(id, (failure.about ?? '').split(/[\s,]+/).filter((text) => text !== '') as TaskId[]);
        },
        fence,
      ),

    reopen: (id, fence) =>
      writes.change(
        id,
        async (run, issue) => {
          if (issue.status === 'closed') {
            const answer = await run({ args: ['reopen', '--json', by, '--', id], effect: 'repeat' });
            if (!(await writes.shows(run, answer, id, ({ status }) => status === 'open')))
              throw bdUnavailable(failureOfWrite(answer, 'open'));
          }
          if (issue.assignee !== null || !['open', 'closed'].includes(issue.status))
            await writes.update(run, id, ['--status=open', '--assignee='], isOpenAndUnassigned, 'open and free');
          await writes.removeEndLabels(run, id, issue.labels);
          return accepted;
        },
        fence,
      ),

    addDependency: (dependent, prerequisite) =>
      writes.change(dependent, async (run, issue) => {
        if ((await reads.show(run, prerequisite)) === null) return refuseMissing(prerequisite);
        const depends = ({ edges }: BdIssue): boolean =>
          edges.some(({ to, type = 'blocks' }) => to === prerequisite && type === 'blocks');
        if (depends(issue)) return accepted;
        const args = ['dep', 'add', '--json', by, '--', dependent, prerequisite];
        const answer = await run({ args, effect: 'repeat' });
        // Another edge between the two counts as a duplicate too: only one that blocks is what was asked for.
        if (await writes.shows(run, answer, dependent, depends)) return accepted;
        if (!('failure' in answer)) throw bdUnavailable(failureOfWrite(answer, `waiting for ${prerequisite}`));
        if (answer.failure.kind !== 'cycle') throw bdUnavailable(answer.failure);
        const cycle = [dependent, ...pathBetween(prerequisite, dependent, await reads.listAll(run))];
        return refuseWith(refusal('dependency_cycle', { cycle }));
      }),

    removeDependency: (dependent, prerequisite) =>
      writes.change(dependent, async (run, issue) => {
        if (!issue.edges.some((edge) => edge.to === prerequisite && isGating(edge))) return accepted;
        const args = ['dep', 'remove', '--json', by, '--', dependent, prerequisite];
        const answer = await run({ args, effect: 'repeat' });
        if (!('failure' in answer) || answer.failure.kind === 'not_found') return accepted;
        throw bdUnavailable(answer.failure);
      }),

    note: (id, text, fence) =>
      calls.alone('background', async (run) => {
        fence?.();
        const answer = await run({
          args: ['comments', 'add', '--json', by, '--', id, asArgument(text)],
          effect: 'once',
        });
        if ('failure' in answer && answer.failure.kind !== 'not_found') throw bdUnavailable(answer.failure);
      }),

    unreadable: async () => null,
    check: async () => {
      const found = await calls.detect();
      const failure = calls.lastFailure();
      const ails = failure !== null && trackerFailures.has(failure.kind);
      return {
        ok: found.state === 'ok' && !ails,
        detail: found.state === 'ok' && ails ? `${found.detail}: ${failure.words}` : found.detail,
      };
    },
  };
};
