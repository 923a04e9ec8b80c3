import { z } from 'zod';
import { dayMs } from '../../../machines/milliseconds.ts';
import {
  type ActorState,
  type Change,
  type Committed,
  type Entry,
  type Guard,
  goesOnFrom,
  type NewEntry,
  type SpentUsd,
  type TaskEdit,
} from '../port.ts';
import { createCounterRows } from './counters.ts';
import { createJournalRows, type JournalRows } from './journal-rows.ts';
import { createNodeRows } from './node-rows.ts';
import {
  createRowRead,
  type Database,
  known,
  type Row,
  together,
  type Work,
  type WorkResult,
} from './rows.ts';

import { isHostedKey, lazy, type StoreStatements } from './store-statements.ts';
import type { UsageRows } from './usage-rows.ts';

/** `run`: the run that the call counts for. */
const paidSchema = z.looseObject({
  assistant: z.string().optional(),
  cost_usd: z.number().optional(),
  run: z.string().optional(),
});

/** A call of our own loop, or what an assistant reported of its own. */
const paidIn = ({ type, data }: Pick<Entry, 'type' | 'data'>) => {
  if (type !== 'api_call_complete' && type !== 'usage') return null;
  const paid = paidSchema.safeParse(JSON.parse(data)).data;
  if (paid?.cost_usd === undefined || paid.cost_usd <= 0) return null;
  return type === 'usage' && paid.assistant === undefined ? null : paid;
};

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Runs are forgotten after this time; days are kept. */
const runsKeptMs = 400 * dayMs;

interface SpendingRows {
  /** Inside the transaction of the entries, so that what a call cost is known when it is committed. */
  add(entries: readonly Entry[]): Work<void>;
  read(day: string, run: string | null): Work<SpentUsd>;
}

/**
 * One row for each day (`day:2026-11-27`) and each run (`run:2026-11-27T…`), whose ids begin with
 * their date: a budget is asked for without a look at tasks or attempts.
 */
const createSpendingRows = (db: Database): SpendingRows => {
  const addTo = db.prepare(
    `insert into spending (scope, usd) values (?, ?)
     on conflict (scope) do update set usd = spending.usd + excluded.usd`,
  );
  const forget = db.prepare("delete from spending where scope >= 'run:' and scope < ?");
  const read = db.prepare(
    'select scope, usd from spending where scope = ? or (scope >= ? and scope <= ?)',
  );
  let lookedOn = '';
  return {
    *add(entries) {
      const sums = new Map<string, number>();
      for (const entry of entries) {
        const paid = paidIn(entry);
        if (paid === null) continue;
        const scopes = [`day:${dayOf(entry.at)}`];
        if (paid.run !== undefined) scopes.push(`run:${paid.run}`);
        for (const scope of scopes) sums.set(scope, (sums.get(scope) ?? 0) + (paid.cost_usd ?? 0));
        if (lookedOn === dayOf(entry.at)) continue;
        lookedOn = dayOf(entry.at);
        yield* forget.send(`run:${dayOf(entry.at - runsKeptMs)}`);
      }
      for (const [scope, usd] of sums) yield* addTo.send(scope, usd);
    },
    *read(day, run) {
      const ofRun = `run:${run ?? ''}`;
      const rows = yield* read.all(ofRun, `day:${day.slice(0, 7)}`, `day:${day.slice(0, 7)}~`);
      let [runUsd, dayUsd, monthUsd] = [0, 0, 0];
      for (const { scope, usd } of rows) {
        if (scope === ofRun) runUsd = Number(usd);
        else monthUsd += Number(usd);
        if (scope === `day:${day}`) dayUsd = Number(usd);
      }
      return { runUsd, dayUsd, monthUsd };
    },
  };
};

/** The columns of an actor that guards read. */
interface GuardedActor {
  readonly revision: number;
  readonly liveAttempt: number;
  readonly owner: string | null;
}

/** The actors of one transaction: as it found them, and as it leaves them. */
interface OpenedActors {
  /** 0: none is saved. */
  revisionOf(id: string): number;
  /** @returns false when another commit changed the actor, or another server has it */
  save(actor: ActorState, guard: Guard | undefined, node: string | null): Work<boolean>;
}

const guardedOf = (row: Row): GuardedActor => ({
  revision: Number(row['revision']),
  liveAttempt: Number(row['live_attempt']),
  owner: row['owner'] == null ? null : String(row['owner']),
});

/** A change without an actor of its own reads these, too. */
const idsOf = ({ actor, unchanged }: Change): readonly string[] => [
  ...(actor === undefined ? [] : [actor.id, actor.taskId]),
  ...(unchanged === undefined ? [] : [unchanged.id]),
];

/**
 * Whether a change may be saved. Nobody else changes an actor meanwhile: every write of a database
 * waits for the one before.
 */
const isCurrent = (
  { id, taskId }: ActorState,
  guard: Guard,
  node: string | null,
  rows: ReadonlyMap<string, GuardedActor>,
): boolean => {
  const task = rows.get(taskId);
  return (
    guard.revision === (rows.get(id)?.revision ?? 0) &&
    (id === taskId || guard.attempt === task?.liveAttempt) &&
    (task?.owner ?? node) === node
  );
};

const ownerAfter = (
  { id, taskId, pending }: ActorState,
  guard: Guard | undefined,
  node: string | null,
  before: GuardedActor | undefined,
): string | null => {
  if (isHostedKey(id)) return pending ? node : null;
  if (guard === undefined) return before?.owner ?? null;
  return id === taskId && pending ? node : null;
};

/** Reads and saves actors. Called inside the transaction. */
const createActorRows = (db: Database, redact: (text: string) => string) => {
  const find = createRowRead(db, 'select id, revision, live_attempt, owner from actors where id');
  const save = db.prepare(
    `insert into actors (id, task_id, version, pending, changed_at, snapshot, live_attempt, owner,
       waits_role, waits_priority, revision)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
     on conflict (id) do update set version = excluded.version, pending = excluded.pending,
       changed_at = excluded.changed_at, snapshot = excluded.snapshot,
       revision = actors.revision + 1, live_attempt = excluded.live_attempt,
       owner = excluded.owner, waits_role = excluded.waits_role,
       waits_priority = excluded.waits_priority,
       restores = case when actors.live_attempt = excluded.live_attempt then actors.restores else 0 end`,
  );
  return function* (changes: readonly Change[]): Work<OpenedActors> {
    const ids = [...new Set(changes.flatMap(idsOf))];
    const found = yield* find(ids);
    const rows = new Map(found.map((row) => [String(row['id']), guardedOf(row)]));
    return {
      revisionOf: (id) => rows.get(id)?.revision ?? 0,
      *save(actor, guard, node) {
        if (guard !== undefined && !isCurrent(actor, guard, node, rows)) return false;
        const { id, taskId, version, pending, changedAt, snapshot, waits } = actor;
        const before = rows.get(id);
        const after: GuardedActor = {
          revision: (before?.revision ?? 0) + 1,
          liveAttempt: guard?.attempt ?? before?.liveAttempt ?? 0,
          owner: ownerAfter(actor, guard, node, before),
        };
        yield* save.send(
          id,
          taskId,
          version,
          pending ? 1 : 0,
          changedAt,
          redact(snapshot),
          after.liveAttempt,
          after.owner,
          waits?.role ?? null,
          waits?.priority ?? null,
        );
        rows.set(id, after);
        return true;
      },
    };
  };
};

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
  { saveStep, forgetRestores, forgetSteps, forgetImages, addRequest }: StoreStatements,
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
    if (over !== undefined) {
      yield* forgetSteps.send(over.taskId, over.attempt);
      yield* forgetImages().send(over.taskId, over.attempt);
    }
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
