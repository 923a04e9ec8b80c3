import { refusal, ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import { neededBy } from '../../ledger/edits.ts';
import { endLabels, isGating, requireValidFields } from '../../ledger/issue.ts';

import { createRequestRows } from '../../store/rows/request-rows.ts';
import type { Transacting } from '../../store/rows/rows.ts';
import { countMatching, pageAtWorkOf, pageOf } from '../page-of.ts';
import {
  carryOut,
  type NewTask,
  type StatusWrites,
  type TaskFields,
  type TrackedTask,
  type Tracker,
  type TrackerReads,
  type TrackerWrites,
} from '../port.ts';
import { type BdCalls, bdUnavailable, type RunBd } from './calls.ts';
import { createCreate } from './create.ts';
import type { FailureKind } from './failure.ts';
import { type BdIssue, blockersOf, unmetIn } from './issues.ts';
import { type BdReads, createBdReads } from './reads.ts';
import {
  type BdWrites,
  createBdWrites,
  createClaim,
  failureOfWrite,
  isOpenAndUnassigned,
  noRefusal,
  refuseMissing,
  refuseUnmet,
  refuseWith,
} from './writes.ts';

const argumentLengthAtMost = 8_000;
/** The kernel takes no NUL in an argument, and at most 128 KiB. */
const asArgument = (text: string): string =>
  text.slice(0, argumentLengthAtMost).replaceAll('\0', '\uFFFD');

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
const createBdStatusChanges = (writes: BdWrites, actor: string): Omit<StatusWrites, 'claim'> => ({
  release: createRelease(writes, actor),
  close: createClose(writes),
  reopen: createReopen(writes),
});

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

const createBdTaskChanges = (
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

const createBdDependencies = (
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

interface CreateParts extends Pick<TrackerReads, 'find'>, Pick<TrackerWrites, 'remove'> {
  readonly create: (task: NewTask) => Promise<TrackedTask>;
}

/**
 * bd writes its task before our request: of two servers that create one for the same request, the
 * second to remember it removes its task again.
 */
const createOnce = (
  requests: () => Pick<Transacting, 'prepare' | 'write'>,
  { create, find, remove }: CreateParts,
): TrackerWrites['create'] => {
  const firstOf = async (requestId: string, taskId: TaskId): Promise<TaskId> => {
    const db = requests();
    const rows = createRequestRows(db);
    return db.write(function* () {
      const first = yield* rows.taskOf(requestId);
      if (first === null) yield* rows.add(requestId, taskId);
      return (first ?? taskId) as TaskId;
    });
  };
  return async (task, requestId) => {
    const created = await create(task);
    if (requestId === undefined) return created;
    const first = await firstOf(requestId, created.id);
    if (first === created.id) return created;
    await remove(created.id);
    const found = await find(first);
    if (found === null) throw new ServiceError('task_not_found', { task_id: first });
    return found;
  };
};

interface BdOptions {
  readonly calls: BdCalls;
  readonly projectRoot: string;
  /** The assignee of every claim, the same for every role. */
  readonly actor: string;
  /** Opened when a request creates a task. */
  readonly requests: () => Pick<Transacting, 'prepare' | 'write'>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Failures of the tracker itself; all others concern one task. */
const trackerFailures: ReadonlySet<FailureKind> = new Set([
  ...([
    'absent',
    'broken',
    'not_initialized',
    'stale',
    'corrupt',
    'newer',
    'lock',
    'crash',
  ] as const),
  ...(['server_down', 'frozen', 'timeout', 'too_large'] as const),
]);

/** The tracker of a project that keeps its tasks in bd. */
export const createBdTracker = ({
  calls,
  projectRoot,
  actor,
  requests,
  log,
}: BdOptions): Tracker => {
  const reads = createBdReads(calls, projectRoot, log);
  const writes = createBdWrites(calls, reads, actor);
  const { by } = writes;
  const claim = createClaim(calls, reads, writes, actor);
  const changes = createBdStatusChanges(writes, actor);
  const taskChanges = createBdTaskChanges(reads, writes);

  return {
    name: 'bd',
    actor,
    find: reads.find,
    list: (urgency = 'interactive') => reads.list(urgency),
    findMany: async (ids) => {
      const wanted = new Set(ids);
      return ids.length === 0
        ? []
        : (await reads.list('interactive')).filter(({ id }) => wanted.has(id));
    },
    dependents: async (id) =>
      (await reads.list('interactive')).filter(({ dependencies }) => dependencies.includes(id)),
    matching: async (text, limit) =>
      (await reads.list('interactive'))
        .filter(({ id }) => id.startsWith(text) || id.endsWith(text) || id.includes(`-${text}`))
        .slice(0, limit),
    page: async (request) => pageOf(await reads.list('interactive'), request),
    pageAtWork: async (request, pending) => {
      const [all, ids] = await Promise.all([reads.list('interactive'), pending()]);
      return pageAtWorkOf(all, request, new Set(ids));
    },
    count: async (request) => countMatching(await reads.list('interactive'), request),
    changes: async () => ({ tasks: await reads.list('background'), mark: 0, extent: 'all' }),
    create: createOnce(requests, {
      create: createCreate(calls, reads, by),
      find: reads.find,
      remove: taskChanges.remove,
    }),
    prepare: async (change, { fence, committed }) => {
      await committed();
      return carryOut({ claim, ...changes }, change, fence);
    },
    claim,
    ...changes,
    ...createBdDependencies(reads, writes),
    ...taskChanges,
    note: (id, text, fence) =>
      calls.alone('background', async (run) => {
        fence?.();
        const answer = await run({
          args: ['comments', 'add', '--json', by, '--', id, asArgument(text)],
          effect: 'once',
        });
        if ('failure' in answer && answer.failure.kind !== 'not_found')
          throw bdUnavailable(answer.failure);
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
