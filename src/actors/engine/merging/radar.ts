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
/** A look takes at most this part of the time. */
const shareOfTime = 10;

export interface RadarPorts {
  /** Null where agents share one folder. */
  readonly look: Radar | null;
  readonly journal: Pick<Journal, 'onOwnCommit' | 'gather'>;
  readonly mode: () => MergeSettings['radar'];
  /** Says something to the agent before its next turn. */
  readonly note: (key: AttemptKey, text: string) => void;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface MergeRadar {
  /** Adds what it has seen to the work of attempts. */
  withSeen(workOf: WorkReads): WorkReads;
  stop(): void;
}

const isEnd = ({ type, data }: Entry): boolean =>
  ['completed', 'failed', 'cancelled'].includes(type) ||
  (type === 'log' && data.includes('"merge_commit"'));

const toolIn = /"tool":"([^"]*)"/;

const changedBy = ({ type, taskId, attempt, data }: Entry): NamedAttempt | null => {
  if (type !== 'tool_end' || !mayChangeFiles(toolIn.exec(data)?.[1] ?? '')) return null;
  const id = parseTaskId(taskId);
  return id === null ? null : { taskId: id, attempt };
};

const noteFor = ({ task_id, paths }: WorkConflict): string =>
  `While you work: ${task_id}, which is not merged either, changes the same lines of ${someOf(paths)}. Whoever is merged second has to resolve that: keep your changes there as small as your task allows.`;

/** Which conflicts are with tasks that were not in conflict before. */
const news = (before: SeenWork | undefined, after: SeenWork): readonly WorkConflict[] =>
  after.conflicts.filter(
    ({ task_id }) =>
      before?.attempt !== after.attempt || !before.conflicts.some((old) => old.task_id === task_id),
  );

const hasSameConflicts = (before: SeenWork | undefined, { conflicts }: SeenWork): boolean =>
  JSON.stringify(before?.conflicts ?? []) === JSON.stringify(conflicts);

/** Says it in the log of the task; `tell`: and to its agent. */
const createTell =
  ({ journal, mode, note, now }: RadarPorts) =>
  (taskId: TaskId, before: SeenWork | undefined, after: SeenWork): void => {
    const { attempt, isLive, conflicts } = after;
    if (hasSameConflicts(before, after)) return;
    const isOver = conflicts.length === 0;
    const message = isOver ? 'conflicts with no other work any more' : conflictWords(conflicts);
    const data = { level: isOver ? 'info' : 'warn', message, conflicts_with: conflicts };
    journal.gather({ entries: [entry(taskId, attempt, 'log', now(), data)] });
    if (isLive && mode() === 'tell')
      for (const each of news(before, after)) note(attemptKey(taskId, attempt), noteFor(each));
  };

/** The work of an attempt, with what was seen of it. */
const withSeen = (work: WorkView | null, attempt: number, seen: SeenWork | undefined) => {
  const isDone = work?.merged_at !== undefined || work?.discarded_at !== undefined;
  if (seen?.attempt !== attempt || isDone || (work === null && !seen.isLive)) return work;
  const conflicts = seen.conflicts.map(({ task_id, paths }) => ({ task_id, paths: [...paths] }));
  return {
    ...(work ?? seen.size),
    ...(conflicts.length === 0 ? {} : { conflicts_with: conflicts }),
  };
};

/** Looks for conflicts to come after each call that may have changed files, with a pause in between. */
export const createMergeRadar = (ports: RadarPorts): MergeRadar => {
  const { look, journal, mode, now, log } = ports;
  const tell = createTell(ports);
  const ending = new AbortController();
  const changed = new Map<AttemptKey, NamedAttempt>();
  let seen: ReadonlyMap<TaskId, SeenWork> = new Map();
  let timer: NodeJS.Timeout | null = null;
  /** Something happened since the last look began. */
  let isWanted = false;
  let nextAt = 0;
  let lastProblem = '';

  const round = async (read: Radar): Promise<void> => {
    const begun = now();
    const attempts = [...changed.values()];
    changed.clear();
    try {
      const found = await read(attempts, ending.signal);
      const before = seen;
      seen = found;
      for (const [taskId, after] of found) tell(taskId, before.get(taskId), after);
      lastProblem = '';
    } catch (error) {
      if (ending.signal.aborted) return;
      const problem = messageOf(error);
      if (problem !== lastProblem) log('could not look for conflicts to come', { error });
      lastProblem = problem;
    }
    nextAt = now() + Math.max(shortestPauseMs, shareOfTime * (now() - begun));
  };

  const lookSoon = (): void => {
    isWanted = true;
    if (look === null || timer !== null || ending.signal.aborted) return;
    const begin = (): void => {
      isWanted = false;
      void round(look).finally(() => {
        timer = null;
        if (isWanted) lookSoon();
      });
    };
    timer = setTimeout(begin, Math.max(nextAt - now(), 0)).unref();
  };

  const stopListening = journal.onOwnCommit((entries) => {
    if (mode() === 'off') {
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
    stop: () => {
      stopListening();
      ending.abort();
      if (timer !== null) clearTimeout(timer);
    },
  };
};
