import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../store/rows.ts';
import { chunksOf } from './chunks.ts';
import type { ExchangeState } from './exchange-state.ts';
import type { ExporterCheck } from './exporter.ts';
import type { FolderMarks } from './folder-marks.ts';
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
  readonly exporter: Pick<ExporterCheck, 'write' | 'writeMark'>;
  readonly marks: FolderMarks;
}

export type IfMissing = 'leave' | 'write';

/** Writes `.beads/issues.jsonl` if it lacks a change of the tables. */
export interface FileExport {
  /**
   * @param ifMissing `leave`: a file that is missing follows the next change of a task, for the
   * commit that git checked out may have none
   * @throws FileMovedError when another program changed the file meanwhile, and what the disk says
   */
  run(ifMissing: IfMissing): Promise<void>;
  /** Time that the last write took (ms). */
  lastMs(): number;
  /** About how many tasks it was asked to write last. */
  lastSize(): number;
}

export const createFileExport = (
  { db, table, projectRoot, isOurs, exporter, marks }: FileExportOptions,
  state: ExchangeState,
  { knows, gives }: Pick<FileImport, 'knows' | 'gives'>,
): FileExport => {
  const file = issuesFileOf(projectRoot);
  let [lastMs, lastSize] = [0, 0];
  return {
    lastMs: () => lastMs,
    lastSize: () => lastSize,
    run: async (ifMissing) => {
      const expected = stampOfIssues(file);
      if (!(await knows(expected)))
        throw new FileMovedError(`${file} is being changed by another program`);
      if ((await db.ask(state.waiting()))?.stamp === expected) return;
      lastSize = (await db.ask(table.newest())).size;
      const isWanted = ifMissing === 'write' && expected === missing && lastSize > 0;
      if (!isWanted && !(await db.ask(state.isBehind()))) return;
      const began = performance.now();
      const others = await db.ask(state.others());
      const mark = marks.add();
      const request = { projectRoot, others, expected, isOurs, gives };
      const { stamp, fresh } = await writeIssuesFile(db, request);
      for (const part of chunksOf([...fresh])) {
        await exporter.write(() => state.wrote(part));
        await nextTurn();
      }
      await exporter.writeMark(() => state.took(stamp, others, mark));
      lastMs = performance.now() - began;
    },
  };
};
