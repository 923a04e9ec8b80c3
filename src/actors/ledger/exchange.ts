import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../../machines/message-of.ts';
import { isRealFolder } from '../files/real-folder.ts';
import { UnsafeFileError } from '../files/regular-file.ts';
import { createSerialQueue } from '../process/serial-queue.ts';
import { withLock } from '../store/process-lock.ts';
import type { Database } from '../store/rows/rows.ts';
import {
  createExchangeState,
  createFolderMarks,
  type ExchangeState,
  type FolderMarks,
} from './exchange-state.ts';
import {
  createExporterCheck,
  type Exporter,
  type ExporterCheck,
  TakenOverError,
} from './exporter.ts';
import { createFileImport, type FileImport, type FileImportOptions } from './import-file.ts';
import {
  chunksOf,
  FileMovedError,
  issuesFileOf,
  missing,
  stampOfIssues,
  writeIssuesFile,
  writeNotInBd,
} from './issues-file.ts';
import type { TaskTable } from './task-table.ts';

interface FileExportOptions {
  readonly db: Database;
  readonly table: TaskTable;
  readonly projectRoot: string;
  /** False when bd keeps the tasks. */
  readonly isOurs: () => boolean;
  readonly exporter: Pick<ExporterCheck, 'write' | 'writeMark'>;
  readonly marks: FolderMarks;
}

type IfMissing = 'leave' | 'write';

/** Writes `.beads/issues.jsonl` if it lacks a change of the tables. */
interface FileExport {
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

const createFileExport = (
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

export interface WriteTimer {
  /** Writes some time after the change, unless a write is due already. */
  start(): void;
  /** Cancels the write that is due. */
  clear(): void;
  /** Lets no further write become due. */
  stop(): void;
}

const retryMs = 5_000;

/**
 * Writes `pauseMs` after a change, once for all changes until then, and again after a failure.
 */
export const createWriteTimer = (pauseMs: () => number, write: () => Promise<void>): WriteTimer => {
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  const writeIn = (ms: number): void => {
    if (stopped || timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      write().catch(() => writeIn(retryMs));
    }, ms).unref();
  };

  return {
    start: () => {
      if (timer === null) writeIn(pauseMs());
    },
    clear: () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
    stop: () => {
      stopped = true;
    },
  };
};

/**
 * Keeps the tables and `.beads/issues.jsonl` together: what others changed there comes in, what we
 * changed goes out.
 */
export interface Exchange {
  /** Takes what others changed in the file before this call. @throws UnsafeFileError */
  refresh(): Promise<void>;
  /** The tables changed: the file follows within a second, later if there are many tasks. */
  changed(): void;
  /**
   * Writes the file now, if it lacks a change of the tables. `ifMissing` as for `FileExport.run`;
   * `leave` by default. @throws what the disk says
   */
  flush(ifMissing?: IfMissing): Promise<void>;
  /** One sentence on why the file and the tables are apart; null when nothing is wrong. */
  problem(): Promise<string | null>;
  /** One sentence when the server that writes the file does not run; null else. */
  unkept(): Promise<string | null>;
  /** Runs work while no process of ours reads or writes the file. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Writes what is left, and stops. */
  stop(): Promise<void>;
}

interface ExchangeOptions
  extends Omit<FileImportOptions, 'exporter' | 'marks'>,
    Omit<FileExportOptions, 'exporter' | 'marks'> {
  /** Null: no other server can use the tables. */
  readonly exporter: Exporter | null;
}

const soonMs = 200;
const manyTasks = 10_000;
const slowMs = 1_000;
/** With many tasks, the wait before a write is this many times as long as the last write took. */
const waitPerWrite = 10;
const exchangeTries = 5;

const createExclusive = (filesPrefix: string | null): Exchange['alone'] => {
  const queue = createSerialQueue();
  return (work) =>
    queue(() => (filesPrefix === null ? work() : withLock(`${filesPrefix}.exchange`, work)));
};

/** Another program may change the file between the import and the export. */
const importAndExport = async (
  fileImport: FileImport,
  fileExport: FileExport,
  ifMissing: IfMissing,
): Promise<void> => {
  for (let tries = 1; ; tries += 1) {
    await fileImport.run();
    try {
      return await fileExport.run(ifMissing);
    } catch (error) {
      if (!(error instanceof FileMovedError) || tries >= exchangeTries) throw error;
    }
  }
};

const unlessTakenOver = (error: unknown): void => {
  if (!(error instanceof TakenOverError)) throw error;
};

/** bd may take the tasks over before our last changes are in the file: writes them to another. */
const createKeepAside = ({ db, projectRoot, log }: ExchangeOptions, state: ExchangeState) => {
  let isTold = false;
  /** @returns one sentence on the changes that bd does not know; null: it knows all */
  return async (): Promise<string | null> => {
    if (!(await db.ask(state.isBehind()))) return null;
    const kept = await writeNotInBd(db, projectRoot);
    const problem = `bd keeps the tasks now and does not know the last changes; give it them with 'bd import -i ${kept}'`;
    if (!isTold) log(problem, {});
    isTold = true;
    return problem;
  };
};

export const createExchange = (options: ExchangeOptions): Exchange => {
  const { db, projectRoot, filesPrefix, isOurs, log } = options;
  const file = issuesFileOf(projectRoot);
  const state = createExchangeState(db);
  const exporter = createExporterCheck(db, options.exporter, state);
  const used = { ...options, exporter, marks: createFolderMarks(projectRoot) };
  const fileImport = createFileImport(used, state);
  const fileExport = createFileExport(used, state, fileImport);
  const alone = createExclusive(filesPrefix);
  let failure: string | null = null;
  const keepAside = createKeepAside(options, state);

  const write = async (ifMissing: IfMissing): Promise<void> => {
    if (!isOurs()) {
      failure = (await keepAside()) ?? failure;
      return;
    }
    if (!(await exporter.begin())) return;
    await importAndExport(fileImport, fileExport, ifMissing).catch(unlessTakenOver);
    failure = null;
  };

  const importIfOurs = async (): Promise<void> => {
    if (!(await exporter.begin())) return;
    await fileImport.run();
    // A write may have waited for what was wrong with the file.
    timer.start();
  };

  const flush = async (ifMissing: IfMissing = 'leave'): Promise<void> => {
    timer.clear();
    try {
      if (await exporter.isOurs()) await alone(() => write(ifMissing));
    } catch (error) {
      failure = `.beads/issues.jsonl cannot be written: ${messageOf(error)}`;
      throw error;
    }
  };

  const pauseMs = (): number =>
    fileExport.lastSize() <= manyTasks
      ? soonMs
      : Math.max(slowMs, waitPerWrite * fileExport.lastMs());
  const timer = createWriteTimer(pauseMs, async () => {
    // A command has ended; the next one, or a server, writes the file.
    if (!db.isOpen()) return;
    const failedBefore = failure !== null;
    try {
      await flush();
    } catch (error) {
      if (!failedBefore)
        log('could not write the tasks to .beads/issues.jsonl; the server tries again', {
          error,
        });
      throw error;
    }
  });

  return {
    refresh: async () => {
      isRealFolder(projectRoot, join(projectRoot, '.beads'));
      if (!(await exporter.isOurs())) return;
      // What the tables hold can be read meanwhile.
      if ((await fileImport.knew(stampOfIssues(file))) || db.isHeld()) return;
      await alone(importIfOurs).catch((error: unknown) => {
        if (error instanceof UnsafeFileError) throw error;
        if (error instanceof TakenOverError) return;
        // What the tables hold can be read all the same.
        failure = `.beads/issues.jsonl cannot be imported: ${messageOf(error)}`;
      });
    },
    changed: timer.start,
    flush,
    problem: async () => {
      const waiting = await db.ask(state.waiting());
      return waiting !== null && waiting.stamp === stampOfIssues(file) ? waiting.problem : failure;
    },
    unkept: async () => {
      const keeper = await exporter.absent();
      if (keeper === null) return null;
      return `nobody writes .beads/issues.jsonl: its server ${keeper} does not run; start that one, or let this one write it: agent config set tracker.export_node ${options.exporter?.name}, and agent server restart`;
    },
    alone,
    stop: async () => {
      timer.stop();
      await flush();
    },
  };
};
