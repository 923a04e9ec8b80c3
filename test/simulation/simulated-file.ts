import type { OwnTasks } from '../../src/actors/ledger/own-tasks.ts';
import { createWriteTimer, type WriteTimer } from '../../src/actors/ledger/write-timer.ts';
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
}

const pauseMs = 200;

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
  const changed = (): void => timer?.start();
  const flush = async (): Promise<void> => {
    if (weather.diskFull) throw new Error('the disk is full');
    lines = linesNow();
  };
  tasks.onEdit(changed);

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
    differences: () => {
      const now = linesNow();
      const ids = new Set([...now.keys(), ...lines.keys()]);
      return [...ids].filter((id) => now.get(id) !== lines.get(id));
    },
  };
};
