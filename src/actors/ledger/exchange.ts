import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../../machines/message-of.ts';
import { withLock } from '../files/process-lock.ts';
import { isRealFolder } from '../files/real-folder.ts';
import { UnsafeFileError } from '../files/regular-file.ts';
import { createSerialQueue } from '../process/serial-queue.ts';
import type { Database } from '../store/database.ts';
import type { CommitAnswer } from '../store/port.ts';
import { type BrokenLine, compareFile, type FileDifference } from './compare-file.ts';
import { createExchangeState } from './exchange-state.ts';
import { issueOf } from './issue-line.ts';
import { issuesFileOf, missing, stampOf } from './issues-file.ts';
import { createImports, type ImportedTask } from './take-difference.ts';
import type { TaskTable } from './task-table.ts';
import { FileMovedError, writeIssuesFile, writeNotInBd } from './write-file.ts';

/** Keeps the tables and `.beads/issues.jsonl` together: what others changed there comes in, what we changed goes out. */
export interface Exchange {
  /** Takes what others changed in the file before this call. @throws UnsafeFileError */
  refresh(): Promise<void>;
  /** The tables changed: the file follows soon (CONTRACT 9). */
  changed(): void;
  /** Writes the file now, if it is not as the tables are. @throws what the disk says */
  flush(): Promise<void>;
  /** One sentence on why the file and the tables are apart; null when nothing is wrong. */
  problem(): string | null;
  /** Runs work while no process of ours reads or writes the file. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Writes what is left, and stops. */
  stop(): Promise<void>;
}

export interface ExchangeOptions {
  readonly db: Database;
  readonly table: TaskTable;
  readonly projectRoot: string;
  /** False when bd keeps the tasks. */
  readonly isOurs: () => boolean;
  /** Commits imported tasks with their journal entries. */
  readonly commit: (imported: readonly ImportedTask[]) => CommitAnswer | Promise<CommitAnswer>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const soonMs = 200;
const manyTasks = 10_000;
const slowMs = 1_000;
const share = 10;
const retryMs = 5_000;
/** A file in which lines are missing must stay as it is for so long before its tasks are removed. */
const stillMs = 500;
const triesAtMost = 5;
/** Tasks in one transaction of an import: a few milliseconds. */
const chunk = 200;
/** In one of the first import. */
const manyAtOnce = 2_000;

const chunksOf = <Element>(all: readonly Element[], size = chunk): readonly (readonly Element[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size));

const sentenceOn = ({ line, problem }: BrokenLine, count: number): string => {
  const others = count > 1 ? `, and ${count - 1} more` : '';
  return `.beads/issues.jsonl line ${line}${others} cannot be read: ${problem}`;
};

export const createExchange = (options: ExchangeOptions): Exchange => {
  const { db, table, projectRoot, isOurs, commit, log } = options;
  const file = issuesFileOf(projectRoot);
  const state = createExchangeState(db);
  const imports = createImports(db, table);
  const queue = createSerialQueue();
  let timer: NodeJS.Timeout | null = null;
  let lastMs = 0;
  let failure: string | null = null;
  let stopped = false;
  let isToldAside = false;

  const alone = <Result>(work: () => Promise<Result>): Promise<Result> =>
    queue(() => (db.file === ':memory:' ? work() : withLock(`${db.file}.exchange`, work)));

  /** A file that is missing or empty says nothing: it is written again, for nobody deletes all tasks like that. */
  const knows = (stamp: string): boolean =>
    stamp === missing || stamp === state.stamp() || stamp === state.waiting()?.stamp;
  const isKnown = (): boolean => knows(stampOf(file));

  /** A program that is still writing has not removed what it has not written yet. */
  const isFinished = async ({ stamp, vanished }: FileDifference): Promise<boolean> => {
    if (vanished.length > 0) await delay(stillMs);
    return stampOf(file) === stamp;
  };

  /** A task that changed meanwhile is merged anew. */
  const takeEach = async (part: readonly string[], merge: (each: string) => ImportedTask | null): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      const imported = part.map(merge).filter((each) => each !== null);
      if (imported.length === 0 || (await commit(imported)) === 'ok') return nextTurn();
      if (tries >= triesAtMost) throw new Error('the tasks change all the time; it is tried again');
    }
  };
  const take = async ({ broken, changed, vanished }: FileDifference): Promise<void> => {
    for (const part of chunksOf(changed)) await takeEach(part, imports.takeLine);
    for (const part of chunksOf(broken.length > 0 ? [] : vanished)) await takeEach(part, imports.takeVanished);
  };

  const finish = ({ stamp, others, broken }: FileDifference): void => {
    if (broken.length === 0) state.took(stamp, others);
  };

  const addAll = async ({ changed }: FileDifference): Promise<void> => {
    for (const part of chunksOf(changed, manyAtOnce)) {
      db.write(() => {
        for (const line of part) table.add(issueOf(line), line);
      });
      await nextTurn();
    }
  };

  /** The tasks of version 2.1.0, of a clone, or of a project whose state folder is lost. A copy of the file is kept. */
  const takeFirst = async (difference: FileDifference): Promise<void> => {
    const copy = `${db.file}.first-import.jsonl`;
    if (db.file !== ':memory:') copyFileSync(file, copy);
    if (table.size === 0) await addAll(difference);
    else await take(difference);
    db.write(() => {
      // Also of what an import added that was cut off.
      table.countBlockers();
      finish(difference);
    });
    for (const name of ['.agent.lock', 'issues.jsonl.bak']) rmSync(join(dirname(file), name), { force: true });
    const { changed } = difference;
    log(`took ${changed.length} tasks over from .beads/issues.jsonl; a copy of the file is ${copy}`, {});
  };

  const bringIn = async (): Promise<void> => {
    for (let tries = 0; tries < triesAtMost && !isKnown(); tries += 1) {
      const difference = await compareFile(db, projectRoot);
      const { stamp, broken } = difference;
      if (!(await isFinished(difference))) continue;
      const [first] = broken;
      // What can be read of a project's first file is shown; later ones wait until they can be read whole.
      if (state.stamp() === null) await takeFirst(difference);
      else if (first === undefined) {
        await take(difference);
        finish(difference);
      }
      if (first !== undefined) state.wait({ stamp, problem: sentenceOn(first, broken.length) });
    }
  };

  const writeOnce = async (): Promise<void> => {
    const expected = stampOf(file);
    if (!knows(expected)) throw new FileMovedError(`${file} is being changed by another program`);
    if (state.waiting()?.stamp === expected) return;
    const isThere = expected !== missing || table.size === 0;
    if (isThere && !state.isBehind()) return;
    const began = performance.now();
    const { stamp, fresh } = await writeIssuesFile(db, {
      projectRoot,
      others: state.others(),
      expected,
      isOurs,
    });
    for (const part of chunksOf([...fresh])) {
      db.write(() => state.wrote(part));
      await nextTurn();
    }
    state.took(stamp, state.others());
    lastMs = performance.now() - began;
  };

  /** bd took the tasks over before these changes were in the file that it read. */
  const keepAside = async (): Promise<void> => {
    if (!state.isBehind()) return;
    const kept = await writeNotInBd(db, projectRoot);
    failure = `bd keeps the tasks now and does not know the last changes; give it them with 'bd import -i ${kept}'`;
    if (!isToldAside) log(failure, {});
    isToldAside = true;
  };

  const write = async (): Promise<void> => {
    if (!isOurs()) return keepAside();
    for (let tries = 1; ; tries += 1) {
      await bringIn();
      try {
        await writeOnce();
        failure = null;
        return;
      } catch (error) {
        if (!(error instanceof FileMovedError) || tries >= triesAtMost) throw error;
      }
    }
  };

  const flush = async (): Promise<void> => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    try {
      await alone(write);
    } catch (error) {
      failure = `.beads/issues.jsonl cannot be written: ${messageOf(error)}`;
      throw error;
    }
  };

  const later = (ms: number): void => {
    if (stopped) return;
    timer ??= setTimeout(() => {
      timer = null;
      const failedBefore = failure !== null;
      flush().catch((error: unknown) => {
        if (!failedBefore)
          log('the tasks could not be written to .beads/issues.jsonl; the server tries again', { error });
        later(retryMs);
      });
    }, ms).unref();
  };

  return {
    refresh: async () => {
      isRealFolder(projectRoot, join(projectRoot, '.beads'));
      if (isKnown()) return;
      await alone(bringIn).catch((error: unknown) => {
        if (error instanceof UnsafeFileError) throw error;
        // What the tables hold can be read all the same.
        failure = `.beads/issues.jsonl cannot be imported: ${messageOf(error)}`;
      });
    },
    changed: () => later(table.size <= manyTasks ? soonMs : Math.max(slowMs, share * lastMs)),
    flush,
    problem: () => {
      const waiting = state.waiting();
      return waiting !== null && waiting.stamp === stampOf(file) ? waiting.problem : failure;
    },
    alone,
    stop: async () => {
      stopped = true;
      await flush();
    },
  };
};
