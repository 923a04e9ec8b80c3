import { conflictWords, type WorkConflict } from '../../../machines/conflict-words.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { someOf } from '../../../machines/plural.ts';
import { type AttemptKey, attemptKey, parseTaskId, type TaskId } from '../../../machines/task.ts';
import { entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Entry } from '../../store/port.ts';
import { mayChangeFiles } from '../../tools/toolbox.ts';
import type { NamedAttempt, Radar, SeenWork } from '../../workspace/port.ts';
import type { WorkReads, WorkView } from '../../workspace/worktrees/work-view.ts';
import type { MergeSettings } from '../attempts/settings.ts';

const shortestPauseMs = 2_000;
/** Pauses are so many times as long as the last look. */
const shareOfTime = 4;

export interface RadarPorts {
  /** Null where agents share one folder. */
  readonly look: Radar | null;
  readonly journal: Pick<Journal, 'onOwnCommit' | 'gather'>;
  readonly landing: () => Pick<MergeSettings, 'radar' | 'regenerate'>;
  /** Says something to the agent before its next turn. */
  readonly note: (key: AttemptKey, text: string) => void;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface MergeRadar {
  /** Adds what it has seen to the work of attempts. */
  withSeen(workOf: WorkReads): WorkReads;
  /** Looks at what earlier starts of the server left. */
  start(): void;
  stop(): void;
}

/** Work may have ended, or have been merged, discarded or updated: a look at nothing new is cheap. */
const isEnd = ({ type }: Entry): boolean =>
  ['completed', 'failed', 'cancelled', 'log'].includes(type);

const toolIn = /"tool":"([^"]*)"/;

const changedBy = ({ type, taskId, attempt, data }: Entry): NamedAttempt | null => {
  if (type !== 'tool_end' || !mayChangeFiles(toolIn.exec(data)?.[1] ?? '')) return null;
  const id = parseTaskId(taskId);
  return id === null ? null : { taskId: id, attempt };
};

const noteFor = ({ task_id, paths }: WorkConflict): string =>
  `While you work: ${task_id}, which is not merged either, changes the same lines of ${someOf(paths)}. Whoever is merged second has to resolve that: keep your changes there as small as your task allows.`;

/** An agent that goes back and forth does not fill the histories of others. */
const toldAtMost = 20;

/**
 * Says in the log of a task with which others it came into conflict, and when that is over; `tell`: and
 * to its agent, once for each of them.
 */
const createTell = ({ journal, landing, note, now }: RadarPorts) => {
  const counts = new Map<AttemptKey, number>();
  const heard = new Set<string>();
  const idsOf = (seen: SeenWork | undefined): string =>
    (seen?.conflicts ?? []).map(({ task_id }) => task_id).join(' ');
  return {
    tell: (taskId: TaskId, before: SeenWork | undefined, after: SeenWork): void => {
      const { attempt, isLive, conflicts } = after;
      const key = attemptKey(taskId, attempt);
      const count = counts.get(key) ?? 0;
      if (idsOf(before) === idsOf(after) || count >= toldAtMost) return;
      counts.set(key, count + 1);
      const isOver = conflicts.length === 0;
      const message = isOver
        ? 'conflicts with no unmerged work any more'
        : conflictWords(conflicts);
      const data = { level: isOver ? 'info' : 'warn', message };
      journal.gather({ entries: [entry(taskId, attempt, 'log', now(), data)] });
      if (!isLive || landing().radar !== 'tell') return;
      for (const each of conflicts) {
        const pair = `${key} ${each.task_id}`;
        if (!heard.has(pair)) note(key, noteFor(each));
        heard.add(pair);
      }
    },
    /** Those that are seen no more need no account. */
    forget: (seen: ReadonlyMap<TaskId, SeenWork>): void => {
      const keys = new Set([...seen].map(([taskId, { attempt }]) => attemptKey(taskId, attempt)));
      for (const key of counts.keys()) if (!keys.has(key)) counts.delete(key);
      for (const pair of heard)
        if (!keys.has(pair.slice(0, pair.indexOf(' ')) as AttemptKey)) heard.delete(pair);
    },
  };
};

/** The work of an attempt, with what was seen of it. */
const withSeen = (work: WorkView | null, attempt: number, seen: SeenWork | undefined) => {
  const isDone = work?.merged_at !== undefined || work?.discarded_at !== undefined;
  if (seen?.attempt !== attempt || isDone) return work;
  if (work === null && (!seen.isLive || seen.size.files === 0)) return null;
  const conflicts = seen.conflicts.map(({ task_id, paths }) => ({ task_id, paths: [...paths] }));
  return {
    ...(work ?? seen.size),
    ...(conflicts.length === 0 ? {} : { conflicts_with: conflicts }),
  };
};

/** Looks for conflicts to come after each call that may have changed files, with a pause in between. */
export const createMergeRadar = (ports: RadarPorts): MergeRadar => {
  const { look, journal, landing, now, log } = ports;
  const { tell, forget } = createTell(ports);
  const ending = new AbortController();
  const changed = new Map<AttemptKey, NamedAttempt>();
  let seen: ReadonlyMap<TaskId, SeenWork> = new Map();
  let isFirst = true;
  let timer: NodeJS.Timeout | null = null;
  /** Something happened since the last look began. */
  let isWanted = false;
  let nextAt = 0;
  let lastProblem = '';

  const round = async (read: Radar): Promise<void> => {
    const begun = now();
    const attempts = [...changed.values()];
    changed.clear();
    const failed = (error: unknown): void => {
      const problem = messageOf(error);
      if (problem !== lastProblem) log('could not look for conflicts to come', { error });
      lastProblem = problem;
    };
    const before = seen;
    try {
      const { regenerate } = landing();
      const found = await read(attempts, Object.keys(regenerate), ending.signal);
      seen = found.seen;
      if (found.problem !== null) failed(found.problem);
    } catch (error) {
      if (ending.signal.aborted) return;
      seen = new Map();
      failed(error);
    }
    // An earlier start has told of work that was over by then.
    for (const [taskId, after] of seen)
      if (!isFirst || after.isLive) tell(taskId, before.get(taskId), after);
    isFirst = false;
    forget(seen);
    nextAt = now() + Math.max(shortestPauseMs, shareOfTime * (now() - begun));
  };

  const lookSoon = (): void => {
    isWanted = true;
    if (look === null || timer !== null || ending.signal.aborted) return;
    const begin = (): void => {
      isWanted = false;
      if (landing().radar === 'off') {
        timer = null;
        return;
      }
      void round(look).finally(() => {
        timer = null;
        if (isWanted) lookSoon();
      });
    };
    timer = setTimeout(begin, Math.max(nextAt - now(), 0)).unref();
  };

  const stopListening = journal.onOwnCommit((entries) => {
    if (landing().radar === 'off') {
      seen = new Map();
      return;
    }
    for (const each of entries) {
      const attempt = changedBy(each);
      if (attempt !== null) changed.set(attemptKey(attempt.taskId, attempt.attempt), attempt);
      if (changed.size > 0 || (seen.size > 0 && isEnd(each))) lookSoon();
    }
  });

  return {
    withSeen: (workOf) => async (taskId, attempt) =>
      withSeen(await workOf(taskId, attempt), attempt, seen.get(taskId)),
    start: lookSoon,
    stop: () => {
      stopListening();
      ending.abort();
      if (timer !== null) clearTimeout(timer);
    },
  };
};
