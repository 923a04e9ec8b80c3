import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../store/database.ts';
import { chunksOf } from './chunks.ts';
import type { ExchangeState } from './exchange-state.ts';
import type { FileImport } from './import-file.ts';
import { issuesFileOf, missing, stampOfIssues } from './issues-file.ts';
import type { TaskTable } from './task-table.ts';
import { FileMovedError, writeIssuesFile } from './write-file.ts';

export interface FileExportOptions {
  readonly db: Database;
  readonly table: TaskTable;
  readonly projectRoot: string;
  /** False when bd keeps the tasks. */
  readonly isOurs: () => boolean;
}

/** Writes `.beads/issues.jsonl` if it is not as the tables are. */
export interface FileExport {
  /**
   * @throws FileMovedError when another program changed the file meanwhile, and what the disk says
   */
  run(): Promise<void>;
  /** Time that the last write took (ms). */
  lastMs(): number;
}

export const createFileExport = (
  { db, table, projectRoot, isOurs }: FileExportOptions,
  state: ExchangeState,
  knows: FileImport['knows'],
): FileExport => {
  const file = issuesFileOf(projectRoot);
  let lastMs = 0;
  return {
    lastMs: () => lastMs,
    run: async () => {
      const expected = stampOfIssues(file);
      if (!knows(expected)) throw new FileMovedError(`${file} is being changed by another program`);
      if (state.waiting()?.stamp === expected) return;
      const isThere = expected !== missing || table.size === 0;
      if (isThere && !state.isBehind()) return;
      const began = performance.now();
      const others = state.others();
      const { stamp, fresh } = await writeIssuesFile(db, { projectRoot, others, expected, isOurs });
      for (const part of chunksOf([...fresh])) {
        await db.write(() => state.wrote(part));
        await nextTurn();
      }
      await db.write(() => state.took(stamp, state.others()));
      lastMs = performance.now() - began;
    },
  };
};
