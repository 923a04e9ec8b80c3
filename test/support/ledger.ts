import { onTestFinished } from 'vitest';
import { type Ledger, openLedger } from '../../src/actors/ledger/ledger.ts';
import { openDatabase, type SqliteDatabase } from '../../src/actors/store/database.ts';
import {
  createEmbeddedTracker,
  type EmbeddedOptions,
} from '../../src/actors/tracker/embedded/embedded.ts';
import { carryOut, type Tracker } from '../../src/actors/tracker/port.ts';

export const anyNumber = (max: number): number => Math.floor(Math.random() * max);

const openInMemory = (): SqliteDatabase => {
  const db = openDatabase({ file: ':memory:' });
  try {
    onTestFinished(db.close);
  } catch {
    // Several tests of a file share it.
  }
  return db;
};

/**
 * The tasks of a project in a database; by default in one of their own, as another clone or program
 * would have it.
 */
export const ledgerAt = (
  projectRoot: string,
  db: SqliteDatabase = openInMemory(),
): Ledger<SqliteDatabase> =>
  openLedger({ db, projectRoot, clock: Date.now, log: () => {}, redact: (text) => text }).ledger;

export const embeddedAt = (
  projectRoot: string,
  options: Partial<EmbeddedOptions> = {},
  ledger: Ledger = ledgerAt(projectRoot),
): Tracker => createEmbeddedTracker({ clock: Date.now, random: anyNumber, ...options }, ledger);

/**
 * A tracker that writes by itself, as bd does, with its own `claim`, `release`, `close` and
 * `reopen`.
 */
export const writingItself = (tracker: Tracker): Tracker => {
  const own: Tracker = {
    ...tracker,
    prepare: async (change, { fence, committed }) => {
      await committed();
      return carryOut(own, change, fence);
    },
  };
  return own;
};

/** Somebody else who changes the file of a project, at once, and reads what `ours` wrote to it. */
export const somebodyElse = (projectRoot: string, actor: string, ours: Ledger): Tracker => {
  const ledger = ledgerAt(projectRoot);
  const tracker = embeddedAt(projectRoot, { actor }, ledger);
  const through =
    <Given extends readonly unknown[], Result>(act: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await ours.exchange.flush();
      const result = await act(...given);
      await ledger.exchange.flush();
      return result;
    };
  return {
    ...tracker,
    find: through(tracker.find),
    create: through(tracker.create),
    claim: through(tracker.claim),
    release: through(tracker.release),
    close: through(tracker.close),
    reopen: through(tracker.reopen),
  };
};
