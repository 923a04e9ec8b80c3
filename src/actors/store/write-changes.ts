import { createCounterRows } from './counters.ts';
import { createJournalRows } from './journal-rows.ts';
import { createNodeRows } from './node-rows.ts';
import { type Change, type Committed, goesOnFrom, type NewEntry, type TaskEdit } from './port.ts';
import { type Database, known, type Work } from './rows.ts';
import { lazy, type StoreStatements } from './store-statements.ts';
import type { UsageRows } from './usage-rows.ts';

/** Carries out the edits of tasks. Called inside the transaction. */
export interface EditRows {
  /** True while the task is as it was when the edit was made, and the tasks are kept here. */
  isCurrent(edit: TaskEdit): Work<boolean>;
  write(edit: TaskEdit): Work<void>;
}

const noEdits: EditRows = {
  isCurrent: () => known(false),
  write: () => known(undefined),
};

interface WriterParts {
  readonly redact: (text: string) => string;
  readonly edits: EditRows | undefined;
  readonly usageRows: () => UsageRows;
}

/** Saves what belongs to a change that is not stale. */
const createRestWriter = (
  { saveStep, forgetRestores, forgetSteps, addRequest }: StoreStatements,
  redact: WriterParts['redact'],
) =>
  function* ({ step, forgetSteps: over, request }: Change): Work<void> {
    if (step !== undefined) {
      const { taskId, attempt, key, intent, result } = step;
      yield* saveStep.send(
        taskId,
        attempt,
        key,
        redact(intent),
        result === null ? null : redact(result),
      );
      if (result !== null) yield* forgetRestores().send(taskId);
    }
    if (over !== undefined) yield* forgetSteps.send(over.taskId, over.attempt);
    if (request !== undefined) yield* addRequest.send(request.id, request.taskId);
  };

/** Writes changes with their entries. Called inside the transaction. */
export const createChangeWriter = (
  database: Database,
  statements: StoreStatements,
  { redact, edits = noEdits, usageRows }: WriterParts,
) => {
  const journalRows = lazy(() => createJournalRows(database, redact));
  const counterRows = lazy(() => createCounterRows(database));
  const nodeRows = lazy(() => createNodeRows(database));
  const saveRest = createRestWriter(statements, redact);

  const revisionOf = function* (id: string): Work<number> {
    return Number((yield* statements.actor.first(id))?.['revision'] ?? 0);
  };

  /** @returns false when another commit changed the actor */
  const saveActor = function* (
    { id, taskId, version, pending, changedAt, snapshot, waits }: NonNullable<Change['actor']>,
    guard: Change['guard'],
    node: string | null,
  ): Work<boolean> {
    const { attempt = null, revision = null } = guard ?? {};
    const isPending = pending ? 1 : 0;
    const { changes } = yield* statements
      .saveActor()
      .run(
        ...[id, taskId, version, isPending, changedAt, redact(snapshot), attempt, revision, node],
        ...[waits?.role ?? null, waits?.priority ?? null],
      );
    return changes > 0;
  };

  /** @returns null when the change is stale */
  const apply = function* (node: string | null, change: Change): Work<readonly NewEntry[] | null> {
    const { actor, guard, entries, unchanged, tasks } = change;
    if (unchanged !== undefined && (yield* revisionOf(unchanged.id)) !== unchanged.revision)
      return null;
    for (const edit of tasks ?? []) if (!(yield* edits.isCurrent(edit))) return null;
    if (actor !== undefined && !(yield* saveActor(actor, guard, node))) return null;
    for (const edit of tasks ?? []) yield* edits.write(edit);
    yield* saveRest(change);
    return entries;
  };
  const writeAll = function* (changes: readonly Change[], node: string | null): Work<Committed> {
    yield* counterRows().begin();
    const stale: Change[] = [];
    const given: NewEntry[] = [];
    for (const change of changes) {
      // What goes on from a stale change is stale, whatever the revision is now.
      const { actor } = change;
      const follows = actor !== undefined && stale.some((other) => goesOnFrom(other, actor));
      const added = follows ? null : yield* apply(node, change);
      if (added === null) stale.push(change);
      else given.push(...added);
    }
    const entries = yield* journalRows()(given);
    yield* counterRows().add(entries, yield* usageRows().add(entries, node));
    return { entries, stale };
  };
  const write = function* (changes: readonly Change[]): Work<Committed> {
    const id = changes[0]?.commit;
    if (id === undefined) return yield* writeAll(changes, null);
    const before = yield* nodeRows().staleOf(id);
    if (before !== null)
      return {
        entries: [],
        stale: changes.filter((_, at) => before === 'all' || before.includes(at)),
      };
    const committed = yield* writeAll(changes, id.node);
    yield* nodeRows().keep(
      id,
      committed.stale.map((change) => changes.indexOf(change)),
    );
    return committed;
  };

  return { write, nodes: nodeRows, counters: () => counterRows().read() };
};
