import { createWriteTimer, type WriteTimer } from '../../src/actors/ledger/exchange.ts';
import type { OwnTasks } from '../../src/actors/ledger/ledger.ts';
import type { SqliteDatabase } from '../../src/actors/store/database.ts';
import type { Change } from '../../src/actors/store/port.ts';
import type { Weather } from './world.ts';

/** `.beads/issues.jsonl` without a disk: each server writes it by the real timer. */
export interface SimulatedFile {
  /** A server starts. */
  open(): void;
  changed(): void;
  flush(): Promise<void>;
  /** Says what the file holds of changes that were rolled back. */
  heldOf(changes: readonly Change[]): readonly string[];
  /** Says which tasks the file does not hold as the tables do. */
  differences(): readonly string[];
  /**
   * Says which of them have been like that for longer than a write and its repetition take. Asked
   * again and again, with null when nobody could write.
   */
  overdue(now: number | null): readonly string[];
}

const pauseMs = 200;
/** One repetition is 5 s after a failure. */
const patienceMs = 7_000;

export const createSimulatedFile = (
  db: SqliteDatabase,
  tasks: OwnTasks,
  weather: Weather,
): SimulatedFile => {
  const all = db.prepare('select id, line from tasks order by id');
  const linesNow = (): ReadonlyMap<string, string> =>
    new Map(db.ask(all.all()).map(({ id, line }) => [String(id), String(line)]));
  let lines: ReadonlyMap<string, string> = new Map();
  let timer: WriteTimer | null = null;
  /** Since when the file has been behind the same tables, while it could be written. */
  let behind: { readonly since: number; readonly of: string } | null = null;
  const changed = (): void => timer?.start();
  const flush = async (): Promise<void> => {
    if (weather.diskFull) {
      // Also when it was full only in this moment, between two looks: its repetition comes later.
      behind = null;
      throw new Error('the disk is full');
    }
    lines = linesNow();
  };
  tasks.onEdit(changed);

  const differences = (): readonly string[] => {
    const now = linesNow();
    const ids = new Set([...now.keys(), ...lines.keys()]);
    return [...ids].filter((id) => now.get(id) !== lines.get(id));
  };

  return {
    open: () => {
      timer = createWriteTimer(() => pauseMs, flush);
      changed();
    },
    changed,
    flush,
    heldOf: (changes) => {
      const now = linesNow();
      return changes
        .flatMap((change) => change.tasks ?? [])
        .filter(({ id, line }) => lines.get(id) === line && now.get(id) !== line)
        .map(({ id }) => id);
    },
    differences,
    overdue: (now) => {
      const ids = now === null ? [] : differences();
      const of = JSON.stringify([...linesNow()]);
      if (now === null || ids.length === 0) behind = null;
      else if (behind?.of !== of) behind = { since: now, of };
      return now !== null && behind !== null && now - behind.since > patienceMs ? ids : [];
    },
  };
};
