import type { Transacting } from '../../store/rows.ts';
import { carryOut } from '../carry-out.ts';
import { countMatching, pageAtWorkOf, pageOf } from '../page-of.ts';
import type { Tracker } from '../port.ts';
import { asArgument } from './argument.ts';
import { type BdCalls, bdUnavailable } from './calls.ts';
import { createClaim } from './claim.ts';
import { createCreate } from './create.ts';
import { createOnce } from './create-once.ts';
import { createBdDependencies } from './dependencies.ts';
import type { FailureKind } from './failure.ts';
import { createBdReads } from './reads.ts';
import { createBdStatusChanges } from './status-changes.ts';
import { createBdTaskChanges } from './task-changes.ts';
import { createBdWrites } from './writes.ts';

export interface BdOptions {
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
