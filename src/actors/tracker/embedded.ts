import { type Refusal, refusal, ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Verdict } from '../../machines/task-context.ts';
import { holderOf } from '../../machines/tracked-task.ts';
import {
  endLabels,
  type Issue,
  type IssueTable,
  isGating,
  isListed,
  pathBetween,
  trackedFromFile,
  unmetOf,
} from './issue.ts';
import { createIssuesFile, type IssuesFile } from './issues-file.ts';
import type { IssuesDocument } from './issues-text.ts';
import { blockingDependency, createId, createIssue, requireValidTask } from './new-issue.ts';
import type { IssueOverlay } from './overlay.ts';
import type { Fence, NewTask, TrackedTask, Tracker } from './port.ts';

export interface EmbeddedOptions {
  readonly projectRoot: string;
  /** The assignee of every claim. */
  readonly actor?: string;
  /** Epoch ms. */
  readonly clock: () => number;
  /** A whole number from 0 to below `max`. */
  readonly random: (max: number) => number;
}

/** Looks at the newest issues and puts what it changes; a refusal changes nothing. */
type IssueEdit<Result> = (issues: IssueOverlay) => { readonly result: Result; readonly changed: boolean };

interface WaitingEdit {
  readonly apply: (issues: IssueOverlay) => boolean;
  readonly settle: () => void;
  readonly reject: (error: unknown) => void;
}

const accepted: Verdict = { refusal: null };
const refuseEdit = (given: Refusal) => ({ result: { refusal: given } satisfies Verdict, changed: false });
const unchanged = { result: accepted, changed: false };

/** The first free moment in which the issue's `updated_at` still rises. */
const touched = (issue: Issue, now: number): string =>
  new Date(Math.max(now, (Date.parse(issue.updated_at) || 0) + 1)).toISOString();

const omitKeys = <Key extends string>(issue: Issue, ...keys: readonly Key[]): Issue =>
  Object.fromEntries(Object.entries(issue).filter(([key]) => !(keys as readonly string[]).includes(key))) as Issue;

const withLabels = (issue: Issue, labels: readonly string[]): Issue =>
  labels.length === 0 ? omitKeys(issue, 'labels') : { ...issue, labels: [...labels] };

const keptLabels = ({ labels = [] }: Issue): readonly string[] => labels.filter((label) => !endLabels.includes(label));

/** The tracker of a project without bd: `.beads/issues.jsonl` in bd's form (facts/beads 12). */
export const createEmbeddedTracker = (
  options: EmbeddedOptions,
  file: IssuesFile = createIssuesFile(options.projectRoot),
): Tracker => {
  const { actor = 'agent-server', clock, random } = options;
  let waiting: WaitingEdit[] = [];
  let writing = false;
  const lists = new WeakMap<IssuesDocument, readonly TrackedTask[]>();
  const views = new WeakMap<IssuesDocument, Map<string, TrackedTask>>();

  /** All writes that wait at this moment go into one replacement of the file; each gets its own answer. */
  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await file.change((issues) => batch.map(({ apply }) => apply(issues)).includes(true));
        for (const { settle } of batch) settle();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    writing = false;
  };

  const edit = <Result>(change: IssueEdit<Result>): Promise<Result> =>
    new Promise((resolve, reject) => {
      let answer: (() => void) | null = null;
      const apply = (issues: IssueOverlay): boolean => {
        try {
          const { result, changed } = change(issues);
          answer = () => resolve(result);
          return changed;
        } catch (error) {
          answer = () => reject(error);
          return false;
        }
      };
      waiting.push({ apply, settle: () => answer?.(), reject });
      if (!writing) queueMicrotask(writeAll);
      writing = true;
    });

  const editIssue = (
    id: TaskId,
    change: (issue: Issue, issues: IssueTable) => Issue | Refusal | null,
    fence?: Fence,
  ): Promise<Verdict> =>
    edit((issues) => {
      fence?.();
      const issue = issues.get(id);
      if (issue === undefined || !isListed(issue)) return refuseEdit(refusal('task_not_found', { task_id: id }));
      const next = change(issue, issues);
      if (next === null) return unchanged;
      if ('facts' in next && 'code' in next) return refuseEdit(next as Refusal);
      issues.set(id, { ...(next as Issue), updated_at: touched(issue, clock()) });
      return { result: accepted, changed: true };
    });

  const unmet = (issue: Issue, issues: IssueTable): Refusal | null => {
    const ids = unmetOf(issue, issues);
    return ids.length === 0 ? null : refusal('dependencies_unmet', { task_id: issue.id as TaskId, unmet: ids });
  };

  const notClaimable = ({ id, status, assignee }: Issue): Refusal | null => {
    const holder = holderOf({ status, assignee: assignee ?? null }, actor);
    return holder === null ? null : refusal('tracker_conflict', { task_id: id as TaskId, holder });
  };

  const list = async (): Promise<readonly TrackedTask[]> => {
    const document = await file.read();
    const known = lists.get(document);
    if (known !== undefined) return known;
    const order = (one: TrackedTask, other: TrackedTask): number =>
      one.createdAt === other.createdAt ? (one.id < other.id ? -1 : 1) : one.createdAt < other.createdAt ? -1 : 1;
    const listed = [...document.issues.values()].filter(isListed);
    const view = listed.map((issue) => trackedFromFile(issue, document.issues)).sort(order);
    lists.set(document, view);
    return view;
  };

  /** A view depends on other issues, so it is computed once for each state of the file. */
  const viewIn = (document: IssuesDocument, issue: Issue): TrackedTask => {
    const known = views.get(document) ?? new Map<string, TrackedTask>();
    views.set(document, known);
    const view = known.get(issue.id) ?? trackedFromFile(issue, document.issues);
    known.set(issue.id, view);
    return view;
  };

  return {
    name: 'embedded',
    actor,
    list,

    find: async (id) => {
      const document = await file.read();
      const issue = document.issues.get(id);
      return issue === undefined || !isListed(issue) ? null : viewIn(document, issue);
    },

    create: async (task: NewTask) => {
      requireValidTask(task);
      return edit((issues) => {
        for (const id of task.dependencies) {
          const target = issues.get(id);
          if (target === undefined || !isListed(target)) throw new ServiceError('task_not_found', { task_id: id });
        }
        const issue = createIssue(createId(issues, random), task, actor, new Date(clock()).toISOString());
        issues.set(issue.id, issue);
        return { result: trackedFromFile(issue, issues), changed: true };
      });
    },

    claim: (id, fence) =>
      editIssue(
        id,
        (issue, issues) => {
          if (issue.status === 'in_progress' && issue.assignee === actor) return null;
          const no = notClaimable(issue) ?? unmet(issue, issues);
          if (no !== null) return no;
          return withLabels({ ...issue, status: 'in_progress', assignee: actor }, keptLabels(issue));
        },
        fence,
      ),

    release: async (id, label, fence) => {
      await editIssue(
        id,
        (issue) => {
          const theirs = issue.assignee !== undefined && issue.assignee !== actor;
          if (theirs || !['open', 'in_progress'].includes(issue.status)) return null;
          return withLabels({ ...omitKeys(issue, 'assignee'), status: 'open' }, [
            ...keptLabels(issue),
            ...(label === null ? [] : [label]),
          ]);
        },
        fence,
      );
    },

    close: (id, reason, fence) =>
      editIssue(
        id,
        (issue, issues) => {
          if (issue.status === 'closed') return null;
          const no = unmet(issue, issues);
          if (no !== null) return no;
          const now = touched(issue, clock());
          return withLabels({ ...issue, status: 'closed', closed_at: now, close_reason: reason }, keptLabels(issue));
        },
        fence,
      ),

    reopen: (id, fence) =>
      editIssue(
        id,
        (issue) => {
          const open = omitKeys(issue, 'closed_at', 'close_reason', 'assignee');
          return withLabels({ ...open, status: 'open' }, keptLabels(issue));
        },
        fence,
      ),

    addDependency: (dependent, prerequisite) =>
      editIssue(dependent, (issue, issues) => {
        const target = issues.get(prerequisite);
        if (target === undefined || !isListed(target)) return refusal('task_not_found', { task_id: prerequisite });
        const cycle = pathBetween(prerequisite, dependent, issues);
        if (cycle !== null) return refusal('dependency_cycle', { cycle: [dependent, ...cycle] });
        const { dependencies = [] } = issue;
        if (dependencies.some(({ depends_on_id, type }) => depends_on_id === prerequisite && type === 'blocks'))
          return null;
        const edge = blockingDependency(dependent, prerequisite, actor, new Date(clock()).toISOString());
        return { ...issue, dependencies: [...dependencies, edge] };
      }),

    removeDependency: (dependent, prerequisite) =>
      editIssue(dependent, (issue) => {
        const { dependencies = [] } = issue;
        const kept = dependencies.filter((edge) => edge.depends_on_id !== prerequisite || !isGating(edge));
        if (kept.length === dependencies.length) return null;
        return kept.length === 0 ? omitKeys(issue, 'dependencies') : { ...issue, dependencies: kept };
      }),

    note: async (id, text, fence) => {
      await editIssue(
        id,
        (issue) => {
          const before = Array.isArray(issue['comments']) ? issue['comments'] : [];
          const created_at = new Date(clock()).toISOString();
          // A number: old bd cannot import a comment whose id is text (facts/beads 12).
          const comment = { id: before.length + 1, issue_id: id, author: actor, text, created_at };
          return { ...issue, comments: [...before, comment] };
        },
        fence,
      );
    },

    unreadable: async () => {
      const { broken } = await file.read();
      const [first] = broken;
      if (first === undefined) return null;
      const others = broken.length > 1 ? `, and ${broken.length - 1} more` : '';
      return `.beads/issues.jsonl line ${first.line}${others} cannot be read: ${first.problem}`;
    },

    check: async () => {
      try {
        await file.requireWritable();
        const { issues, torn } = await file.read();
        const note = torn ? '; the last write was cut off, the file before it is used' : '';
        return { ok: true, detail: `embedded, ${issues.size} tasks${note}` };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
  };
};
