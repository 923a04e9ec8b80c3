import { ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { countTasksInFile } from '../ownership.ts';
import type { Urgency } from '../port.ts';
import type { BdAnswer } from './answer.ts';
import { type BdCalls, bdUnavailable, type RunBd } from './calls.ts';
import type { BdFailure } from './failure.ts';
import { type BdIssue, blockersIn, issuesIn, trackedFromBd, unmetAmong, unmetIn } from './issues.ts';

/** What bd says, asked for once by all who ask at the same time, and kept for a moment (facts/beads 10). */
export interface BdReads {
  find(id: TaskId): Promise<TrackedTask | null>;
  list(urgency: Urgency): Promise<readonly TrackedTask[]>;
  /** The issue as it is now, inside a critical section. */
  show(run: RunBd, id: TaskId): Promise<BdIssue | null>;
  /** Several at once; the missing ones are missing. */
  showAll(run: RunBd, ids: readonly TaskId[]): Promise<readonly BdIssue[]>;
  listAll(run: RunBd): Promise<ReadonlyMap<string, BdIssue>>;
  /** Who keeps an open issue from being worked on, as `bd blocked` says: also inherited and external blockers. */
  blockersOf(run: RunBd, id: TaskId): Promise<readonly TaskId[]>;
  /** What we wrote ourselves: everything else is asked again, this is taken as it is. */
  wrote(task: TrackedTask | null): void;
  /** Within the moment for which answers are kept, what was found last. */
  recent(id: TaskId): TrackedTask | null;
}

const keptMs = 500;

/** The JSON of an answer. @throws tracker_unavailable */
export const requireJson = (answer: BdAnswer): unknown => {
  if ('failure' in answer) throw bdUnavailable(answer.failure);
  return answer.value;
};

const isNoJson = ({ failure }: { readonly failure: BdFailure }): boolean =>
  ['unreadable', 'unknown'].includes(failure.kind);

/** An empty answer beside a file of tasks means that bd has not read them (facts/beads 12). @throws tracker_unavailable */
const requireRead = (projectRoot: string, id?: string): void => {
  const count = countTasksInFile(projectRoot, id);
  if (count === 0) return;
  throw new ServiceError('tracker_unavailable', {
    detail: `bd does not know ${id ?? `the ${count} tasks`} of .beads/issues.jsonl`,
    remedy: "let it read them with 'bd import -i .beads/issues.jsonl' (from 0.50 on: 'bd import .beads/issues.jsonl')",
  });
};

interface Kept<Value> {
  readonly at: number;
  readonly value: Value;
}

export const createBdReads = (
  calls: BdCalls,
  projectRoot: string,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): BdReads => {
  const found = new Map<string, Kept<TrackedTask>>();
  const finding = new Map<string, Promise<TrackedTask | null>>();
  const listing = new Map<Urgency, Promise<readonly TrackedTask[]>>();
  let blocked: Kept<ReadonlyMap<string, readonly TaskId[]>> | null = null;
  /** Rises with every write of ours: what was asked before it is not kept. */
  let epoch = 0;

  const isFresh = <Value>(kept: Kept<Value> | null | undefined): kept is Kept<Value> =>
    kept != null && performance.now() - kept.at < keptMs;
  const badRow = (problem: string): void => log('a task that bd printed cannot be read; it is left out', { problem });

  const keep = (task: TrackedTask, since: number): void => {
    if (since !== epoch) return;
    for (const [id, kept] of found) if (!isFresh(kept)) found.delete(id);
    found.set(task.id, { at: performance.now(), value: task });
  };

  const showAll = async (run: RunBd, ids: readonly TaskId[]): Promise<readonly BdIssue[]> => {
    if (ids.length === 0) return [];
    const answer = await run({ args: ['show', '--json', '--', ...ids], effect: 'read' });
    // Ids that are the beginning of others are none: only the very id counts.
    if ('failure' in answer && ['not_found', 'ambiguous'].includes(answer.failure.kind)) return [];
    const asked: ReadonlySet<string> = new Set(ids);
    return issuesIn(requireJson(answer), badRow).filter(({ id }) => asked.has(id));
  };
  const show = async (run: RunBd, id: TaskId): Promise<BdIssue | null> => (await showAll(run, [id]))[0] ?? null;

  const blockersOf = async (run: RunBd, id: TaskId): Promise<readonly TaskId[]> => {
    if (!isFresh(blocked)) {
      const since = epoch;
      const value = blockersIn(requireJson(await run({ args: ['blocked', '--json'], effect: 'read' })));
      blocked = since === epoch ? { at: performance.now(), value } : null;
      return value.get(id) ?? [];
    }
    return blocked.value.get(id) ?? [];
  };

  const findNow = async (run: RunBd, id: TaskId): Promise<TrackedTask | null> => {
    const since = epoch;
    const issue = await show(run, id);
    if (issue === null) {
      requireRead(projectRoot, id);
      return null;
    }
    const direct = unmetIn(issue);
    const unmet = issue.status === 'open' && direct.length === 0 ? await blockersOf(run, id) : direct;
    const task = trackedFromBd(issue, { unmet, ready: issue.status === 'open' && unmet.length === 0 });
    keep(task, since);
    return task;
  };

  const listArgs = async (): Promise<readonly string[]> => {
    const flat = calls.isLacking('bare list') ? ['--flat'] : [];
    return ['list', '--all', '--json', '--limit=0', ...flat];
  };

  const listAll = async (run: RunBd): Promise<ReadonlyMap<string, BdIssue>> => {
    let answer = await run({ args: await listArgs(), effect: 'read' });
    // One version prints a tree here (facts/beads 3); which one it is costs a call, so it is asked only then.
    if ('failure' in answer && isNoJson(answer) && (await calls.capabilities()).flat) {
      calls.lacks('bare list');
      answer = await run({ args: await listArgs(), effect: 'read' });
    }
    const issues = issuesIn(requireJson(answer), badRow);
    if (issues.length === 0) requireRead(projectRoot);
    return new Map(issues.map((issue) => [issue.id, issue]));
  };

  const listNow = async (run: RunBd): Promise<readonly TrackedTask[]> => {
    const all = await listAll(run);
    const answer = await run({ args: ['ready', '--json', '--limit=0'], effect: 'read' });
    const ready = new Set(issuesIn(requireJson(answer), badRow).map(({ id }) => id));
    const order = (one: BdIssue, other: BdIssue): number =>
      one.createdAt === other.createdAt ? (one.id < other.id ? -1 : 1) : one.createdAt < other.createdAt ? -1 : 1;
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
    blockersOf,
    recent: (id) => {
      const kept = found.get(id);
      return isFresh(kept) ? kept.value : null;
    },
    wrote: (task) => {
      epoch += 1;
      blocked = null;
      found.clear();
      finding.clear();
      listing.clear();
      if (task !== null) keep(task, epoch);
    },
    find: async (id) => {
      const kept = found.get(id);
      if (isFresh(kept)) return kept.value;
      const same =
        finding.get(id) ?? calls.alone('interactive', (run) => findNow(run, id)).finally(() => finding.delete(id));
      finding.set(id, same);
      return same;
    },
    list: async (urgency) => {
      const same =
        listing.get('interactive') ??
        listing.get(urgency) ??
        calls.alone(urgency, listNow).finally(() => listing.delete(urgency));
      listing.set(urgency, same);
      return same;
    },
  };
};
