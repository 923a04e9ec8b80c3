import type { ActorState, Change, Guard } from './port.ts';
import { createRowRead } from './read-rows.ts';
import type { Database, Row, Work } from './rows.ts';
import { isWorkflowId } from './store-statements.ts';

/** What a guard asks of the row of an actor. */
interface GuardedActor {
  readonly revision: number;
  readonly liveAttempt: number;
  readonly owner: string | null;
}

/** The actors of one transaction: as it found them, and as it leaves them. */
export interface OpenedActors {
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

/** What a change without an actor of its own asks about, too. */
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
  if (isWorkflowId(id)) return pending ? node : null;
  if (guard === undefined) return before?.owner ?? null;
  return id === taskId && pending ? node : null;
};

/** Reads and saves actors. Called inside the transaction. */
export const createActorRows = (db: Database, redact: (text: string) => string) => {
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
          ...[id, taskId, version, pending ? 1 : 0, changedAt, redact(snapshot)],
          ...[after.liveAttempt, after.owner, waits?.role ?? null, waits?.priority ?? null],
        );
        rows.set(id, after);
        return true;
      },
    };
  };
};
