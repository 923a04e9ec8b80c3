import { createCounterRows } from './counters.ts';
import type { Database } from './database.ts';
import { createJournalRows } from './journal-rows.ts';
import { createNodeRows } from './node-rows.ts';
import { type Change, type Committed, goesOnFrom, type NewEntry, type TaskEdit } from './port.ts';
import { lazy, type StoreStatements } from './store-statements.ts';
import type { UsageRows } from './usage-rows.ts';

/** Carries out the edits of tasks. Called inside the transaction. */
export interface EditRows {
  /** True while the task is as it was when the edit was made, and the tasks are kept here. */
  isCurrent(edit: TaskEdit): boolean;
  write(edit: TaskEdit): void;
}

const noEdits: EditRows = {
  isCurrent: () => false,
  write: () => {},
};

interface WriterParts {
  readonly redact: (text: string) => string;
  readonly edits: EditRows | undefined;
  readonly usageRows: () => UsageRows;
}

/** Saves what belongs to a change that is not stale. */
const createRestWriter =
  ({ saveStep, forgetSteps, addRequest }: StoreStatements, redact: WriterParts['redact']) =>
  ({ step, forgetSteps: over, request }: Change): void => {
    if (step !== undefined) {
      const { taskId, attempt, key, intent, result } = step;
      saveStep.run(taskId, attempt, key, redact(intent), result === null ? null : redact(result));
    }
    if (over !== undefined) forgetSteps.run(over.taskId, over.attempt);
    if (request !== undefined) addRequest.run(request.id, request.taskId);
  };

/** Writes changes with their entries. Called inside the transaction. */
export const createChangeWriter = (
  database: Database,
  statements: StoreStatements,
  { redact, edits = noEdits, usageRows }: WriterParts,
) => {
  const journalRows = lazy(() => createJournalRows(database, redact));
  const counterRows = lazy(() => createCounterRows(database));
  const nodeRows = lazy(() => createNodeRows(database, Date.now));
  const saveRest = createRestWriter(statements, redact);

  const revisionOf = (id: string): number => Number(statements.actor.first(id)?.['revision'] ?? 0);

  /** @returns false when another commit changed the actor */
  const saveActor = (
    { id, taskId, version, pending, changedAt, snapshot }: NonNullable<Change['actor']>,
    guard: Change['guard'],
    node: string | null,
  ): boolean => {
    const { attempt = null, revision = null } = guard ?? {};
    const isPending = pending ? 1 : 0;
    const { changes } = statements
      .saveActor()
      .run(id, taskId, version, isPending, changedAt, redact(snapshot), attempt, revision, node);
    return changes > 0;
  };

  /** @returns null when the change is stale */
  const apply = (node: string | null, change: Change): readonly NewEntry[] | null => {
    const { actor, guard, entries, unchanged, tasks } = change;
    if (unchanged !== undefined && revisionOf(unchanged.id) !== unchanged.revision) return null;
    if (tasks?.every((edit) => edits.isCurrent(edit)) === false) return null;
    if (actor !== undefined && !saveActor(actor, guard, node)) return null;
    for (const edit of tasks ?? []) edits.write(edit);
    saveRest(change);
    return entries;
  };
  const writeAll = (changes: readonly Change[], node: string | null): Committed => {
    counterRows().begin();
    const stale: Change[] = [];
    const given = changes.flatMap((change) => {
      // What goes on from a stale change is stale, whatever the revision is now.
      const { actor } = change;
      const follows = actor !== undefined && stale.some((other) => goesOnFrom(other, actor));
      const added = follows ? null : apply(node, change);
      if (added === null) stale.push(change);
      return added ?? [];
    });
    const entries = journalRows()(given);
    counterRows().add(entries, usageRows().add(entries, node));
    return { entries, stale };
  };
  const write = (changes: readonly Change[]): Committed => {
    const id = changes[0]?.commit;
    if (id === undefined) return writeAll(changes, null);
    const known = nodeRows().staleOf(id);
    if (known !== null)
      return {
        entries: [],
        stale: changes.filter((_, at) => known === 'all' || known.includes(at)),
      };
    const committed = writeAll(changes, id.node);
    nodeRows().keep(
      id,
      committed.stale.map((change) => changes.indexOf(change)),
    );
    return committed;
  };

  return { write, nodes: nodeRows, counters: () => counterRows().read() };
};
