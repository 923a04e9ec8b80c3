import type { TaskEdit } from '../store/port.ts';
import type { Database, Work } from '../store/rows/rows.ts';
import type { Issue } from './issue.ts';
import { issueOf, lineOf } from './issue-line.ts';

import type { StoredTask, StoredTaskReads } from './task-reads.ts';

/** These say one thing together: a merge takes all of them from the same side. */
const stateKeys: readonly string[] = ['status', 'assignee', 'closed_at', 'close_reason'];
/** Lists in which each element can be added and removed by itself. */
const setKeys: readonly string[] = ['labels', 'dependencies', 'comments'];

const jsonOf = (value: unknown): string | undefined => JSON.stringify(value);
const isSameJson = (one: unknown, other: unknown): boolean => jsonOf(one) === jsonOf(other);
const issuePart = (issue: Issue, keys: readonly string[]): unknown =>
  keys.map((key) => issue[key] ?? null);
const updatedAt = ({ updated_at }: Issue): number => Date.parse(updated_at ?? '') || 0;

const elementsOf = (value: unknown): ReadonlyMap<string | undefined, unknown> =>
  new Map((Array.isArray(value) ? value : []).map((element) => [jsonOf(element), element]));

/** Keeps elements that both have or one added; undefined when nothing is left. */
const mergeSets = (base: unknown, ours: unknown, theirs: unknown): unknown => {
  const [was, mine, yours] = [elementsOf(base), elementsOf(ours), elementsOf(theirs)];
  const isKept = (key: string | undefined): boolean =>
    (mine.has(key) && yours.has(key)) || !was.has(key);
  const merged = [...new Map([...yours, ...mine])]
    .filter(([key]) => isKept(key))
    .map(([, element]) => element);
  return merged.length === 0 ? undefined : merged;
};

interface Versions {
  /** As both had it last; null when the file never held it. */
  readonly base: Issue | null;
  readonly ours: Issue;
  readonly theirs: Issue;
  /** An attempt works on it: its status and assignee stay ours. */
  readonly isLive: boolean;
}

/**
 * A task that changed in the tables (`ours`) and in the file (`theirs`). What one side changed is
 * taken from it; what both changed, from the side with the newer `updated_at`. Keys keep the order
 * of `theirs`. (ADR 0045)
 */
export const mergeIssue = ({ base, ours, theirs, isLive }: Versions): Issue => {
  const newer = updatedAt(theirs) > updatedAt(ours) ? theirs : ours;
  const sideOf = (keys: readonly string[]): Issue => {
    if (base === null) return newer;
    if (isSameJson(issuePart(theirs, keys), issuePart(base, keys))) return ours;
    return isSameJson(issuePart(ours, keys), issuePart(base, keys)) ? theirs : newer;
  };
  const state = isLive ? ours : sideOf(stateKeys);
  const mergedValue = (key: string): unknown => {
    if (stateKeys.includes(key)) return state[key];
    if (setKeys.includes(key)) return mergeSets(base?.[key], ours[key], theirs[key]);
    return key === 'updated_at' ? newer.updated_at : sideOf([key])[key];
  };
  const keys = [...new Set([...Object.keys(theirs), ...Object.keys(ours)])];
  const merged = keys
    .map((key) => [key, mergedValue(key)] as const)
    .filter(([, value]) => value !== undefined);
  return Object.fromEntries(merged) as Issue;
};

/** The keys in which two versions of a task differ, for people. */
const changedKeys = (before: Issue, after: Issue): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => !isSameJson(before[key], after[key]),
  );

/** The effect of an import on one task. */
export interface ImportedTask {
  readonly edit: TaskEdit;
  /** For the journal; null when people see no difference. */
  readonly news: {
    readonly what: 'added' | 'changed' | 'removed';
    /** Keys of bd's form whose values changed. */
    readonly keys: readonly string[];
  } | null;
}

interface Imports {
  /** Merges a line of the file with the task; null when it changes nothing. */
  takeLine(line: string): Work<ImportedTask | null>;
  /** Removes a task that the file held last and holds no more, unless it changed here since. */
  takeVanished(id: string): Work<ImportedTask | null>;
}

/** Three-way: the tables, the file, and the line that the file held last. */
export const createImports = (db: Database, table: Pick<StoredTaskReads, 'stored'>): Imports => {
  const pending = db.prepare('select 1 as one from actors where id = ? and pending = 1');
  /**
   * An attempt of ours works on a task that is claimed and whose actor must run after a restart.
   */
  const isLive = function* ({ id, status }: Issue): Work<boolean> {
    return status === 'in_progress' && (yield* pending.first(id)) !== null;
  };

  const merged = function* (
    line: string,
    theirs: Issue,
    ours: Issue,
    stored: StoredTask,
  ): Work<Issue> {
    if (stored.line === line) return theirs;
    const isAtWork = yield* isLive(ours);
    if (!stored.isAhead && !isAtWork) return theirs;
    const base = stored.base === '' ? null : issueOf(stored.base);
    return mergeIssue({ base, ours, theirs, isLive: isAtWork });
  };

  return {
    *takeLine(line) {
      const theirs = issueOf(line);
      const { id } = theirs;
      const found = yield* table.stored(id);
      if (found === null)
        return {
          edit: { id, revision: null, line, base: line },
          news: { what: 'added', keys: [] },
        };
      if (found.base === line) return null;
      const ours = issueOf(found.line);
      const next = yield* merged(line, theirs, ours, found);
      const isTheirs = changedKeys(next, theirs).length === 0;
      const keys = changedKeys(ours, next).filter((key) => key !== 'updated_at');
      return {
        edit: {
          id,
          revision: found.revision,
          line: isTheirs ? line : lineOf(next, line),
          base: line,
        },
        news: keys.length === 0 ? null : { what: 'changed', keys },
      };
    },
    *takeVanished(id) {
      const found = yield* table.stored(id);
      if (found === null || found.base === '') return null;
      const { line, revision, isAhead } = found;
      if (!isAhead && !(yield* isLive(issueOf(line))))
        return { edit: { id, revision, line: null }, news: { what: 'removed', keys: [] } };
      return { edit: { id, revision, line, base: '' }, news: null };
    },
  };
};
