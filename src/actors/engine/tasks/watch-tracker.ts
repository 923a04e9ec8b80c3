import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TaskId } from '../../../machines/task.ts';
import { holderOf, statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';
import { shownIn } from '../../journal/transition-frames.ts';
import type { ActorReads, EntryReads, SavedActor } from '../../store/port.ts';
import {
  type Fence,
  ignoreStartedRun,
  onlyWhileIdle,
  type StatusWrites,
  type TrackerInfo,
  type TrackerReads,
} from '../../tracker/port.ts';

/** Asks the tracker at intervals what changed, and reports changes by others. */
interface TrackerWatch {
  start(): void;
  stop(): Promise<void>;
}

interface WatchPorts {
  readonly tracker: TrackerInfo &
    Pick<TrackerReads, 'page' | 'changes' | 'findMany'> &
    Pick<StatusWrites, 'release'>;
  readonly store: Pick<ActorReads, 'actor' | 'actors'> & Pick<EntryReads, 'latest'>;
  /** True when a run of the task goes on in this server. */
  readonly isPending: (taskId: TaskId) => boolean;
  /** Calls the listener when a task of which that was true has no run any more. */
  readonly onRest: (listener: (taskId: TaskId) => void) => void;
  /**
   * Called for each task that is new or changed. Returns false when it is at work and must be
   * observed again.
   */
  readonly observe: (task: TrackedTask, saved: SavedActor | null) => Promise<boolean>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/**
 * A look that takes longer than `shortLookMs` lengthens the pause by three times the excess, so that
 * a slow tracker has rest. The time to report changes does not count.
 */
const pauseMs = 1_500;
const shortLookMs = 200;
const pausePerExcess = 3;
const pauseAtMostMs = 30_000;
const pauseAfterLook = (lookMs: number): number =>
  Math.min(pauseMs + pausePerExcess * Math.max(0, lookMs - shortLookMs), pauseAtMostMs);
/** Pause after a failed look, times the number of failures. */
const failedPauseMs = 5_000;

/** Includes the time of the change: two changes may cancel each other out. */
const essence = ({ id: _, createdAt: __, ...rest }: TrackedTask): string => JSON.stringify(rest);

type IsStopped = () => boolean;

/**
 * Opens tasks that an earlier server left started, while nothing of ours runs; never those that
 * somebody else holds.
 */
const releaseForgotten = async (
  { tracker, store, isPending, log }: WatchPorts,
  tasks: readonly TrackedTask[],
  isStopped: IsStopped,
): Promise<void> => {
  const fenceFor = (id: TaskId): Fence => {
    const requireIdle = onlyWhileIdle(isPending, id);
    return () => {
      if (isStopped()) throw new Error('the server is stopping');
      requireIdle();
    };
  };
  for (const { id, status, assignee } of tasks) {
    if (isStopped()) return;
    if (status !== 'in_progress' || assignee !== tracker.actor) continue;
    const saved = await store.actor(id);
    if (saved?.pending === true) continue;
    if (saved === null)
      log('a task is started in the tracker for this service, which knows nothing of it', {
        task_id: id,
      });
    else {
      log('a task was left started in the tracker; it is open again', { task_id: id });
      await tracker.release(id, 'agent-failed', fenceFor(id)).catch(ignoreStartedRun);
    }
  }
};

/** Reports tasks that changed. A task that could not be observed comes again. */
const createComparison = (ports: WatchPorts, isStopped: IsStopped) => {
  const { tracker, store, observe, isPending } = ports;
  /** The last look at each task, for a tracker that lists all. */
  const known = new Map<TaskId, string>();
  /** Tasks that changed in the tracker while they were at work; they wait until they are at rest. */
  const atWork = new Set<TaskId>();
  /** Observed again by the next look. */
  const waiting = new Set<TaskId>();
  let last: readonly TrackedTask[] | null = null;
  let begun = false;

  /**
   * True when the status differs from the last frame of an earlier server. That of a request hides
   * what the tracker says, so such a task is observed again when it is at rest.
   */
  const changedMeanwhile = async (task: TrackedTask): Promise<boolean> => {
    if (isPending(task.id)) return true;
    const latest = await store.latest(task.id, 'snapshot');
    return latest !== null && shownIn(latest.data).status !== statusInTracker(task);
  };
  const isKnown = (task: TrackedTask): boolean => {
    const before = known.get(task.id);
    const now = essence(task);
    known.set(task.id, now);
    return before === now;
  };
  const observeNews = async (task: TrackedTask, saved: SavedActor | null): Promise<void> => {
    const isTaken = await observe(task, saved);
    waiting.delete(task.id);
    if (isTaken) return;
    // The run of a task that others closed or took is told once more.
    const isOthers = task.status === 'closed' || holderOf(task, tracker.actor) !== null;
    (isPending(task.id) && !isOthers ? atWork : waiting).add(task.id);
  };
  const forgetAllBut = (listed: ReadonlySet<TaskId>): void => {
    for (const ids of [known, atWork, waiting])
      for (const id of ids.keys()) if (!listed.has(id)) ids.delete(id);
  };

  return {
    /** `tasks` are all that there are. */
    all: async (tasks: readonly TrackedTask[]): Promise<void> => {
      const isSame = tasks === last;
      for (const task of isSame ? tasks.filter(({ id }) => waiting.has(id)) : tasks) {
        const isNew = !known.has(task.id);
        const isNews = !isKnown(task) && (begun || !isNew || (await changedMeanwhile(task)));
        if (isStopped()) return;
        if (isNews || waiting.has(task.id)) await observeNews(task, await store.actor(task.id));
      }
      forgetAllBut(new Set(tasks.map(({ id }) => id)));
      last = tasks;
    },
    /** `tasks` changed since the last look. */
    changed: async (tasks: readonly TrackedTask[]): Promise<void> => {
      const news: TrackedTask[] = [];
      for (const task of tasks)
        if (begun || waiting.has(task.id) || (await changedMeanwhile(task))) news.push(task);
      const rows = news.length === 0 ? [] : await store.actors(news.map(({ id }) => id));
      const saved = new Map(rows.map((row) => [row.id, row]));
      for (const task of news) {
        if (isStopped()) return;
        await observeNews(task, saved.get(task.id) ?? null);
      }
    },
    rested: (taskId: TaskId): void => {
      if (atWork.delete(taskId)) waiting.add(taskId);
    },
    waiting: (): readonly TaskId[] => [...waiting],
    isDone: (): boolean => waiting.size + atWork.size === 0,
    begin: (): void => {
      begun = true;
    },
  };
};

const startedAtMost = 10_000;

export const createTrackerWatch = (ports: WatchPorts): TrackerWatch => {
  const { tracker, log } = ports;
  let timer: NodeJS.Timeout | null = null;
  let stopped = true;
  let failures = 0;
  let running = Promise.resolve();
  const isStopped: IsStopped = () => stopped;
  /** Time that the present look has spent on reports. */
  let reportingMs = 0;
  const observe: WatchPorts['observe'] = async (task, saved) => {
    const startedAt = performance.now();
    try {
      return await ports.observe(task, saved);
    } finally {
      reportingMs += performance.now() - startedAt;
    }
  };
  const compare = createComparison({ ...ports, observe }, isStopped);
  let mark: number | null = null;
  /** Up to it nothing waits to be observed again. A later server begins there. */
  let done: number | null = null;

  /** Tasks that came to rest: the end of one that had no time to tell the tracker is told now. */
  const rested = new Set<TaskId>();
  ports.onRest((taskId) => {
    compare.rested(taskId);
    rested.add(taskId);
  });
  const releaseRested = async (): Promise<void> => {
    const ids = [...rested];
    await releaseForgotten(ports, await tracker.findMany(ids), isStopped);
    for (const id of ids) rested.delete(id);
  };

  const takeChanges = async (): Promise<void> => {
    if (mark === null) {
      const started = await tracker.page({ status: 'started', limit: startedAtMost });
      await releaseForgotten(ports, started, isStopped);
    } else if (rested.size > 0) await releaseRested();
    const waiting = compare.waiting();
    for (let isDone = false; !isDone && !stopped; ) {
      const { tasks, mark: next, extent } = await tracker.changes(mark, done);
      if (extent === 'all') await compare.all(tasks);
      else await compare.changed(tasks);
      // Only what was observed is done with.
      if (!stopped) mark = next;
      isDone = extent !== 'more';
      if (isDone && extent === 'end' && waiting.length > 0)
        await compare.changed(await tracker.findMany(waiting));
      if (!isDone) await nextTurn();
    }
    if (!stopped && compare.isDone()) done = mark;
    if (!stopped) compare.begin();
  };

  /** @returns the pause before the next look (ms) */
  const look = async (): Promise<number> => {
    const startedAt = performance.now();
    reportingMs = 0;
    try {
      await takeChanges();
      if (failures > 0) log('the tracker can be used again', { after_failures: failures });
      failures = 0;
      return pauseAfterLook(performance.now() - startedAt - reportingMs);
    } catch (error) {
      if (stopped) return pauseMs;
      failures += 1;
      if (failures === 1) log('the tracker cannot be used; the server tries again', { error });
      return Math.min(failedPauseMs * failures, pauseAtMostMs);
    }
  };

  const lookThenWait = async (): Promise<void> => {
    const pause = await look();
    if (!stopped) timer = setTimeout(begin, pause).unref();
  };
  const begin = (): void => {
    running = lookThenWait();
  };

  return {
    start: () => {
      stopped = false;
      begin();
    },
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      return running;
    },
  };
};
