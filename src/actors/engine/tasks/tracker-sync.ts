import type { ActorRefFrom } from 'xstate';
import type { TaskSnapshot, taskMachine } from '../../../machines/task/task-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import { holderOf, type TrackedTask } from '../../../machines/tracked-task.ts';
import type { Journal } from '../../journal/journal.ts';
import {
  isTaskReadable,
  type SavedTaskReads,
  savedSnapshot,
  stateIn,
  viewFrom,
} from '../../journal/snapshots.ts';
import {
  looksSame,
  observedEntries,
  shownIn,
  trackerSnapshot,
} from '../../journal/transition-frames.ts';
import type { EntryReads, NewEntry, SavedActor } from '../../store/port.ts';
import {
  ignoreStartedRun,
  onlyWhileIdle,
  type StatusWrites,
  type TrackerInfo,
  type TrackerReads,
} from '../../tracker/port.ts';

interface ObservedTask {
  readonly actor: ActorRefFrom<typeof taskMachine>;
  tracked: TrackedTask;
}

interface ObserverPorts {
  readonly tracker: TrackerInfo & Pick<TrackerReads, 'find'> & Pick<StatusWrites, 'release'>;
  readonly store: SavedTaskReads & Pick<EntryReads, 'latest'>;
  readonly journal: Journal;
  readonly now: () => number;
  readonly live: (taskId: TaskId) => ObservedTask | null;
  readonly isPending: (taskId: TaskId) => boolean;
  readonly isStarting: (taskId: TaskId) => boolean;
  /** Tells a task that waits for its dependencies. Returns false when it does not wait. */
  readonly dependenciesChanged: (seen: TrackedTask) => boolean;
  /** This start of the server. */
  readonly node: string;
  /** True for the server of all that observes tasks at rest. */
  readonly observesRest: () => boolean;
  /** Starts the actor of a task, which then reads the tracker. */
  readonly startActor: (taskId: TaskId) => Promise<void>;
}

const opensTask = (task: TaskSnapshot): boolean =>
  task.matches({ queued: 'reopening' }) || task.matches({ queued: 'sendingBack' });

/** True when the last snapshot of the task looks otherwise. */
const isNewState = async (
  store: ObserverPorts['store'],
  seen: TrackedTask,
  saved: SavedActor | null,
): Promise<boolean> => {
  const latest = await store.latest(seen.id, 'snapshot');
  return latest === null || !looksSame(shownIn(latest.data), await viewFrom(store, seen, saved));
};

/** Tells a task at work that somebody closed or took it. */
const createLiveObserver =
  ({ tracker, live, now }: ObserverPorts) =>
  async (seen: TrackedTask, host: ObservedTask): Promise<void> => {
    const suspicious = seen.status === 'closed' || holderOf(seen, tracker.actor) !== null;
    if (!suspicious) return;
    const before = host.actor.getSnapshot();
    // The list may be older than our last write: only a new look counts.
    const fresh = await tracker.find(seen.id);
    const after = host.actor.getSnapshot();
    const isSame = live(seen.id) === host && after.context.attempt === before.context.attempt;
    if (fresh === null || !isSame) return;
    // What was read may be older than that write, and would come after it.
    if (opensTask(before) || opensTask(after)) return;
    const holder = holderOf(fresh, tracker.actor);
    if (fresh.status !== 'closed' && holder === null) return;
    host.tracked = fresh;
    const status = fresh.status === 'closed' ? 'complete' : 'elsewhere';
    host.actor.send({ type: 'tracker.observed', status, holder, at: now() });
  };

/**
 * Takes changes that others made in the tracker. `saved` is the actor of the task as it was not long
 * ago: what seems to call for a change is decided by the actor as it is.
 * @returns false when the task is at work and must be observed again
 */
export const createObserver = (
  ports: ObserverPorts,
): ((seen: TrackedTask, saved: SavedActor | null) => Promise<boolean>) => {
  const { tracker, store, journal, now, isPending } = ports;
  const observeLive = createLiveObserver(ports);

  /** Closed by somebody else while our run had not begun: its readers must see the end. */
  const wasClosedElsewhere = async (
    { id, status }: TrackedTask,
    saved: SavedActor | null,
  ): Promise<boolean> =>
    status === 'closed' &&
    saved !== null &&
    stateIn(saved).hasTag('resting') &&
    (await savedSnapshot(store, id)).hasTag('resting');

  /**
   * Started for us, and nothing of ours runs: its file was reverted, for example by git, or a claim
   * was carried out whose answer did not come and which was then given up.
   */
  const wasLeftStarted = (seen: TrackedTask, saved: SavedActor | null): boolean => {
    const { id, status, assignee, updatedAt } = seen;
    if (status !== 'in_progress' || assignee !== tracker.actor || isPending(id)) return false;
    return saved !== null && !saved.pending && Date.parse(updatedAt) < saved.changedAt;
  };

  const releaseAgain = async ({ id }: TrackedTask): Promise<void> => {
    const fresh = await tracker.find(id);
    if (fresh === null || !wasLeftStarted(fresh, await store.actor(id))) return;
    const ended = await savedSnapshot(store, id);
    const label = ended.hasTag('failed')
      ? 'agent-failed'
      : ended.hasTag('cancelled')
        ? 'agent-cancelled'
        : null;
    await tracker.release(id, label, onlyWhileIdle(isPending, id)).catch(ignoreStartedRun);
  };

  const commitIfSame = async (id: TaskId, revision: number, entries: readonly NewEntry[]) =>
    (await journal.commit({ entries, unchanged: { id, revision } })) === 'ok';

  /**
   * Shows what a run that waits still waits for; one that waits for nothing goes on by itself.
   * @returns false when the task changed meanwhile and must be observed again
   */
  const showWait = async (seen: TrackedTask): Promise<boolean> => {
    if (seen.unmet.length === 0) return true;
    const saved = await store.actor(seen.id);
    if (saved === null || !(await isNewState(store, seen, saved))) return true;
    const { tags } = await savedSnapshot(store, seen.id);
    const entries = [trackerSnapshot(await viewFrom(store, seen, saved), now(), tags)];
    return commitIfSame(seen.id, saved.revision, entries);
  };

  /** @returns false when the task changed meanwhile and must be observed again */
  const showChange = async (seen: TrackedTask, before: SavedActor | null): Promise<boolean> => {
    if (!(await isNewState(store, seen, before))) return true;
    // The list may be older than our last write.
    const fresh = await tracker.find(seen.id);
    const saved = await store.actor(seen.id);
    if (fresh === null || !(await isNewState(store, fresh, saved))) return true;
    if (saved?.pending === true || isPending(seen.id)) return false;
    const entries = observedEntries(await viewFrom(store, fresh, saved), now());
    return commitIfSame(seen.id, saved?.revision ?? 0, entries);
  };

  return async (seen, saved) => {
    const host = ports.live(seen.id);
    if (host !== null && isPending(seen.id)) {
      await observeLive(seen, host);
      if (!ports.dependenciesChanged(seen)) return false;
      // It waits, so no write of ours is under way: this is how it is shown when it comes to rest.
      host.tracked = seen;
      return showWait(seen);
    }
    // A server that can read it sees to it.
    if (host === null && saved !== null && !isTaskReadable(saved)) return true;
    // It is being restored, or another server has it.
    if (host === null && saved?.pending === true)
      return saved.owner !== null && saved.owner !== ports.node;
    if (!ports.observesRest()) return true;
    if (wasLeftStarted(seen, saved)) await releaseAgain(seen);
    if (host === null && !ports.isStarting(seen.id) && (await wasClosedElsewhere(seen, saved)))
      await ports.startActor(seen.id);
    else if (!(await showChange(seen, saved))) return false;
    return !isPending(seen.id);
  };
};
