import { ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { countTasksInFile } from '../../ledger/ownership.ts';
import type { Urgency } from '../../process/serial-queue.ts';
import type { BdAnswer } from './answer.ts';
import { type BdCalls, bdUnavailable, type RunBd } from './calls.ts';
import type { BdFailure } from './failure.ts';
import {
  type BdIssue,
  blockersIn,
  issuesIn,
  trackedFromBd,
  unmetAmong,
  unmetIn,
} from './issues.ts';

/** @throws tracker_unavailable */
export const requireJson = (answer: BdAnswer): unknown => {
  if ('failure' in answer) throw bdUnavailable(answer.failure);
  return answer.value;
};

const isNoJson = ({ failure }: { readonly failure: BdFailure }): boolean =>
  ['unreadable', 'unknown'].includes(failure.kind);

/**
 * An empty answer next to a file of tasks means that bd has not read them. @throws
 * tracker_unavailable
 */
const requireRead = (projectRoot: string, id?: string): void => {
  const count = countTasksInFile(projectRoot, id);
  if (count === 0) return;
  throw new ServiceError('tracker_unavailable', {
    detail: `bd does not know ${id ?? `the ${count} tasks`} of .beads/issues.jsonl`,
    remedy:
      "import them with 'bd import -i .beads/issues.jsonl' (from 0.50 on: 'bd import .beads/issues.jsonl')",
  });
};

/** Each runs inside a critical section. */
interface BdQueries {
  show(run: RunBd, id: TaskId): Promise<BdIssue | null>;
  /** Ids that bd does not know are left out. */
  showAll(run: RunBd, ids: readonly TaskId[]): Promise<readonly BdIssue[]>;
  listAll(run: RunBd): Promise<ReadonlyMap<string, BdIssue>>;
  listTracked(run: RunBd): Promise<readonly TrackedTask[]>;
  listBlocked(run: RunBd): Promise<ReadonlyMap<string, readonly TaskId[]>>;
}

const createBdQueries = (
  calls: BdCalls,
  projectRoot: string,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): BdQueries => {
  const badRow = (problem: string): void =>
    log('cannot read a task that bd printed; it is left out', { problem });

  const showAll = async (run: RunBd, ids: readonly TaskId[]): Promise<readonly BdIssue[]> => {
    if (ids.length === 0) return [];
    const answer = await run({ args: ['show', '--json', '--', ...ids], effect: 'read' });
    // bd also accepts the beginning of an id; we accept only the whole id.
    if ('failure' in answer && ['not_found', 'ambiguous'].includes(answer.failure.kind)) return [];
    const asked: ReadonlySet<string> = new Set(ids);
    return issuesIn(requireJson(answer), badRow).filter(({ id }) => asked.has(id));
  };
  const show = async (run: RunBd, id: TaskId): Promise<BdIssue | null> =>
    (await showAll(run, [id]))[0] ?? null;

  const listArgs = async (): Promise<readonly string[]> => {
    const flat = calls.isLacking('bare list') ? ['--flat'] : [];
    return ['list', '--all', '--json', '--limit=0', ...flat];
  };

  const listAll = async (run: RunBd): Promise<ReadonlyMap<string, BdIssue>> => {
    let answer = await run({ args: await listArgs(), effect: 'read' });
    // One version prints a tree here. Finding the version costs a call, so only now.
    if ('failure' in answer && isNoJson(answer) && (await calls.capabilities()).flat) {
      calls.lacks('bare list');
      answer = await run({ args: await listArgs(), effect: 'read' });
    }
    const issues = issuesIn(requireJson(answer), badRow);
    if (issues.length === 0) requireRead(projectRoot);
    return new Map(issues.map((issue) => [issue.id, issue]));
  };

  const listTracked = async (run: RunBd): Promise<readonly TrackedTask[]> => {
    const all = await listAll(run);
    const answer = await run({ args: ['ready', '--json', '--limit=0'], effect: 'read' });
    const ready = new Set(issuesIn(requireJson(answer), badRow).map(({ id }) => id));
    const order = (one: BdIssue, other: BdIssue): number =>
      one.createdAt === other.createdAt
        ? one.id < other.id
          ? -1
          : 1
        : one.createdAt < other.createdAt
          ? -1
          : 1;
    return [...all.values()].sort(order).map((issue) => {
      const unmet = issue.status === 'closed' ? [] : unmetAmong(issue, all);
      return trackedFromBd(issue, {
        unmet,
        ready: issue.status === 'open' && unmet.length === 0 && ready.has(issue.id),
      });
    });
  };

  return {
    show,
    showAll,
    listAll,
    listTracked,
    listBlocked: async (run) =>
      blockersIn(requireJson(await run({ args: ['blocked', '--json'], effect: 'read' }))),
  };
};

type Blockers = ReadonlyMap<string, readonly TaskId[]>;

/** Answers of bd of the last 500 ms, none from before our last write. */
interface RecentAnswers {
  task(id: TaskId): TrackedTask | null;
  blockers(): Blockers | null;
  /**
   * The number of our writes when a read begins; the answer is not kept when another one comes
   * meanwhile.
   */
  epoch(): number;
  keepTask(task: TrackedTask, epoch: number): void;
  keepBlockers(blockers: Blockers, epoch: number): void;
  /** Forgets all answers, at each of our writes. */
  clear(): void;
}

const reuseMs = 500;

interface KnownAnswer<Value> {
  readonly at: number;
  readonly value: Value;
}

const freshValue = <Value>(known: KnownAnswer<Value> | null | undefined): Value | null =>
  known != null && performance.now() - known.at < reuseMs ? known.value : null;

const createRecentAnswers = (): RecentAnswers => {
  const tasks = new Map<string, KnownAnswer<TrackedTask>>();
  let blockers: KnownAnswer<Blockers> | null = null;
  let writes = 0;

  return {
    task: (id) => freshValue(tasks.get(id)),
    blockers: () => freshValue(blockers),
    epoch: () => writes,
    keepTask: (task, epoch) => {
      if (epoch !== writes) return;
      for (const [id, known] of tasks) if (freshValue(known) === null) tasks.delete(id);
      tasks.set(task.id, { at: performance.now(), value: task });
    },
    keepBlockers: (value, epoch) => {
      blockers = epoch === writes ? { at: performance.now(), value } : null;
    },
    clear: () => {
      writes += 1;
      blockers = null;
      tasks.clear();
    },
  };
};

/** Reads from bd. Concurrent callers share one call; its answer is cached for 500 ms. */
export interface BdReads extends Pick<BdQueries, 'show' | 'showAll' | 'listAll'> {
  find(id: TaskId): Promise<TrackedTask | null>;
  list(urgency: Urgency): Promise<readonly TrackedTask[]>;
  /** Includes inherited and external blockers. */
  blockersOf(run: RunBd, id: TaskId): Promise<readonly TaskId[]>;
  /** Clears the cache and caches this task, which was just written. */
  wrote(task: TrackedTask | null): void;
  /** The cached answer of the last `find`, or null. */
  recent(id: TaskId): TrackedTask | null;
}

export const createBdReads = (
  calls: BdCalls,
  projectRoot: string,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): BdReads => {
  const { show, showAll, listAll, listTracked, listBlocked } = createBdQueries(
    calls,
    projectRoot,
    log,
  );
  const recent = createRecentAnswers();
  const finding = new Map<string, Promise<TrackedTask | null>>();
  const listing = new Map<Urgency, Promise<readonly TrackedTask[]>>();

  const blockersOf = async (run: RunBd, id: TaskId): Promise<readonly TaskId[]> => {
    const known = recent.blockers();
    if (known !== null) return known.get(id) ?? [];
    const epoch = recent.epoch();
    const blocked = await listBlocked(run);
    recent.keepBlockers(blocked, epoch);
    return blocked.get(id) ?? [];
  };

  const findNow = async (run: RunBd, id: TaskId): Promise<TrackedTask | null> => {
    const epoch = recent.epoch();
    const issue = await show(run, id);
    if (issue === null) {
      requireRead(projectRoot, id);
      return null;
    }
    const direct = unmetIn(issue);
    const unmet =
      issue.status === 'open' && direct.length === 0 ? await blockersOf(run, id) : direct;
    const task = trackedFromBd(issue, {
      unmet,
      ready: issue.status === 'open' && unmet.length === 0,
    });
    recent.keepTask(task, epoch);
    return task;
  };

  return {
    show,
    showAll,
    listAll,
    blockersOf,
    recent: recent.task,
    wrote: (task) => {
      recent.clear();
      finding.clear();
      listing.clear();
      if (task !== null) recent.keepTask(task, recent.epoch());
    },
    find: async (id) => {
      const known = recent.task(id);
      if (known !== null) return known;
      const same =
        finding.get(id) ??
        calls.alone('interactive', (run) => findNow(run, id)).finally(() => finding.delete(id));
      finding.set(id, same);
      return same;
    },
    list: async (urgency) => {
      const same =
        listing.get('interactive') ??
        listing.get(urgency) ??
        calls.alone(urgency, listTracked).finally(() => listing.delete(urgency));
      listing.set(urgency, same);
      return same;
    },
  };
};
