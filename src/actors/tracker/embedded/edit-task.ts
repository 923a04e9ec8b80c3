import { refusal } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { Acceptance } from '../../../machines/task-context.ts';
import {
  claimed,
  closed,
  type Edited,
  type Editor,
  isRefusal,
  released,
  reopened,
} from '../../ledger/edits.ts';
import { type Issue, isListed, trackedFrom } from '../../ledger/issue.ts';
import { issueOf } from '../../ledger/issue-line.ts';
import { lineOf } from '../../ledger/issue-text.ts';
import type { StoredTask } from '../../ledger/task-reads.ts';
import type { TaskTable } from '../../ledger/task-table.ts';
import { known, type Work } from '../../store/rows.ts';
import type { Fence, PreparedChange, StatusChange } from '../port.ts';
import type { LedgerAccess } from './ledger-access.ts';

/** `unmet`: its blockers that are not done. */
type Edit = (issue: Issue, editor: Editor, unmet: () => Work<readonly TaskId[]>) => Work<Edited>;

export interface TaskEditor {
  edit(id: TaskId, change: Edit, fence?: Fence): Promise<Acceptance>;
  changeStatus(change: StatusChange, fence?: Fence): Promise<Acceptance>;
  /** As `changeStatus`, for a transition that commits the edit. */
  prepareStatus(change: StatusChange, fence: Fence): Promise<PreparedChange>;
}

interface TaskEditorOptions {
  /** The assignee of every claim. */
  readonly actor: string;
  /** Epoch ms. */
  readonly clock: () => number;
}

/** The first free moment in which the issue's `updated_at` still rises. */
const touched = (issue: Issue, now: number): string =>
  new Date(Math.max(now, (Date.parse(issue.updated_at ?? '') || 0) + 1)).toISOString();

export const createTaskEditor = (
  { actor, clock }: TaskEditorOptions,
  table: TaskTable,
  access: LedgerAccess,
): TaskEditor => {
  /** The task as it is, and as `change` makes it; `next` is null when it stays as it is. */
  const changed = function* (
    id: TaskId,
    change: Edit,
  ): Work<Acceptance & { readonly stored: StoredTask | null; readonly next: Issue | null }> {
    const stored = yield* table.stored(id);
    const issue = stored === null ? null : issueOf(stored.line);
    if (stored === null || issue === null || !isListed(issue))
      return { refusal: refusal('task_not_found', { task_id: id }), stored: null, next: null };
    const now = touched(issue, clock());
    const next = yield* change(issue, { actor, now }, stored.unmet);
    if (isRefusal(next)) return { refusal: next, stored, next: null };
    if (next === null) return { refusal: null, stored, next };
    const { created_at = stored.createdAt } = next;
    return { refusal: null, stored, next: { ...next, created_at, updated_at: now } };
  };
  const editOf = (change: StatusChange): Edit => {
    switch (change.kind) {
      case 'claim':
        return function* (issue, editor, unmet) {
          return claimed(issue, yield* unmet(), editor);
        };
      case 'close':
        return function* (issue, editor, unmet) {
          return closed(issue, yield* unmet(), change.reason, editor);
        };
      case 'release':
        return (issue, editor) => known(released(issue, change.label, editor));
      case 'reopen':
        return (issue) => known(reopened(issue));
    }
  };

  const edit: TaskEditor['edit'] = (id, change, fence) =>
    access.write(function* () {
      fence?.();
      const { refusal, next } = yield* changed(id, change);
      if (next !== null) yield* table.put(next);
      return { refusal };
    });

  return {
    edit,
    changeStatus: (change, fence) => edit(change.id, editOf(change), fence),
    prepareStatus: (change, fence) =>
      access.readOurs(function* () {
        fence();
        const { id } = change;
        const { refusal, stored, next } = yield* changed(id, editOf(change));
        if (next === null || stored === null) return { refusal };
        const toCommit = { id, revision: stored.revision, line: lineOf(next, stored.line) };
        const facts = { createdAt: stored.createdAt, now: clock() };
        return {
          refusal,
          toCommit: {
            edit: toCommit,
            tracked: trackedFrom(next, yield* stored.unmet(), facts),
          },
        };
      }),
  };
};
