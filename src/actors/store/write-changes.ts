import { createActorRows, type OpenedActors } from './actor-rows.ts';
import { createCounterRows } from './counters.ts';
import { createJournalRows, type JournalRows } from './journal-rows.ts';
import { createNodeRows } from './node-rows.ts';
import { type Change, type Committed, goesOnFrom, type NewEntry, type TaskEdit } from './port.ts';
import { type Database, known, type Row, together, type Work, type WorkResult } from './rows.ts';
import { createSpendingRows } from './spending-rows.ts';
import { lazy, type StoreStatements } from './store-statements.ts';
import type { UsageRows } from './usage-rows.ts';

/** Carries out the edits of tasks. Called inside the transaction. */
export interface EditRows {
  /** The rows of tasks, which the others go by. One that is missing has none. */
  read(ids: readonly string[]): Work<readonly Row[]>;
  /** True while the task is as it was when the edit was made, and the tasks are kept here. */
  isCurrent(edit: TaskEdit, row: Row | null): boolean;
  write(edit: TaskEdit, row: Row | null): Work<void>;
}

const noEdits: EditRows = {
  read: () => known([]),
  isCurrent: () => false,
  write: () => known(undefined),
};

/** Rows by their ids, null where there is none; without those that have to be read again. */
type TaskRows = Map<string, Row | null>;

/** What a transaction has read before it writes. */
interface Opened {
  readonly actors: OpenedActors;
  readonly histories: WorkResult<ReturnType<JournalRows['open']>>;
  readonly ended: WorkResult<ReturnType<UsageRows['open']>>;
  readonly tasks: TaskRows;
}

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
  const actorRows = lazy(() => createActorRows(database, redact));
  const journalRows = lazy(() => createJournalRows(database, redact));
  const counterRows = lazy(() => createCounterRows(database));
  const spendingRows = lazy(() => createSpendingRows(database));
  const nodeRows = lazy(() => createNodeRows(database));
  const saveRest = createRestWriter(statements, redact);

  const readTasks = function* (ids: readonly string[]): Work<TaskRows> {
    const rows = new Map((yield* edits.read(ids)).map((row) => [String(row['id']), row]));
    return new Map(ids.map((id) => [id, rows.get(id) ?? null]));
  };
  /** All that the changes ask about, in one wait. */
  const open = function* (changes: readonly Change[]): Work<Opened> {
    const entries = changes.flatMap((change) => change.entries);
    const edited = [...new Set(changes.flatMap(({ tasks = [] }) => tasks.map(({ id }) => id)))];
    const [actors, histories, ended, tasks] = yield* together([
      actorRows()(changes),
      journalRows().open(entries),
      usageRows().open(entries),
      readTasks(edited),
    ] as const);
    return { actors, histories, ended, tasks };
  };
  const rowOf = function* ({ id }: TaskEdit, tasks: TaskRows): Work<Row | null> {
    if (!tasks.has(id)) for (const [read, row] of yield* readTasks([id])) tasks.set(read, row);
    return tasks.get(id) ?? null;
  };

  /** @returns null when the change is stale */
  const apply = function* (
    node: string | null,
    change: Change,
    { actors, tasks: known }: Opened,
  ): Work<readonly NewEntry[] | null> {
    const { actor, guard, entries, unchanged, tasks = [] } = change;
    if (unchanged !== undefined && actors.revisionOf(unchanged.id) !== unchanged.revision)
      return null;
    for (const edit of tasks) if (!edits.isCurrent(edit, yield* rowOf(edit, known))) return null;
    if (actor !== undefined && !(yield* actors.save(actor, guard, node))) return null;
    for (const edit of tasks) {
      yield* edits.write(edit, yield* rowOf(edit, known));
      // It may change the rows of others, whose blocker it is.
      known.clear();
    }
    yield* saveRest(change);
    return entries;
  };
  const writeAll = function* (
    changes: readonly Change[],
    node: string | null,
    opened: Opened,
  ): Work<Committed> {
    yield* counterRows().begin();
    const stale: Change[] = [];
    const given: NewEntry[] = [];
    for (const change of changes) {
      // What goes on from a stale change is stale, whatever the revision is now.
      const { actor } = change;
      const follows = actor !== undefined && stale.some((other) => goesOnFrom(other, actor));
      const added = follows ? null : yield* apply(node, change, opened);
      if (added === null) stale.push(change);
      else given.push(...added);
    }
    const entries = yield* journalRows().add(given, opened.histories);
    yield* spendingRows().add(entries);
    yield* counterRows().add(entries, yield* usageRows().add(entries, node, opened.ended));
    return { entries, stale };
  };
  const write = function* (changes: readonly Change[]): Work<Committed> {
    const id = changes[0]?.commit ?? null;
    const [before, opened] = yield* together([
      id === null ? known(null) : nodeRows().staleOf(id),
      open(changes),
    ] as const);
    if (before !== null)
      return {
        entries: [],
        stale: changes.filter((_, at) => before === 'all' || before.includes(at)),
      };
    const committed = yield* writeAll(changes, id?.node ?? null, opened);
    if (id !== null)
      yield* nodeRows().keep(
        id,
        committed.stale.map((change) => changes.indexOf(change)),
      );
    return committed;
  };

  return { write, nodes: nodeRows, counters: () => counterRows().read(), spending: spendingRows };
};
