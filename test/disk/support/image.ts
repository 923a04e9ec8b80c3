import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../../src/actors/store/database.ts';
import type { Entry } from '../../../src/actors/store/port.ts';
import { createSqliteStore, type SqliteStore } from '../../../src/actors/store/sqlite.ts';
import { atOnce } from '../../simulation/at-once.ts';
import { differencesOf } from '../../support/differences.ts';
import { embeddedAt, ledgerAt } from '../../support/ledger.ts';

type Embedded = ReturnType<typeof embeddedAt>;

/** What was acknowledged before the power failed. */
export interface Promised {
  readonly created: readonly string[];
  readonly executed: readonly string[];
  /** The highest id of a frame that somebody saw. */
  readonly shown: number;
}

/** The journal as it became without a power cut. */
export type Truth = readonly Entry[];

const everything = { after: 0, limit: 1_000_000 };

export const truthOf = (file: string): Truth => {
  const store = createSqliteStore({ file, redact: (text) => text });
  const entries = store.read(everything);
  store.close();
  return entries;
};

const reading = async <Result>(work: () => Result | Promise<Result>): Promise<Result | Error> => {
  try {
    return await work();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
};

const journalProblems = async (
  store: SqliteStore,
  promised: Promised,
  truth: Truth,
): Promise<readonly string[]> => {
  const entries = store.read(everything);
  const other = entries.find(
    (entry, index) => JSON.stringify(entry) !== JSON.stringify(truth[index]),
  );
  return [
    ...(entries.length < promised.shown
      ? [`${entries.length} entries, but ${promised.shown} were shown`]
      : []),
    ...(other === undefined ? [] : [`entry ${other.seq} is not the one that was written`]),
    ...promised.executed
      .filter((id) => store.actor(id) === null)
      .map((id) => `the run of ${id} is lost`),
    ...promised.executed
      .filter((id) => store.request(`run-${id}`)?.taskId !== id)
      .map((id) => `the request that ran ${id} is forgotten`),
    ...(await differencesOf(store)),
  ];
};

const line = { taskId: 'bd-next', attempt: 0, type: 'log', at: 1, data: '{}', cause: null };

const nextCommit = (file: string): readonly string[] => {
  const store = createSqliteStore({ file, redact: (text) => text });
  const {
    entries: [entry],
  } = atOnce(store.commit({ entries: [line] }));
  store.close();
  const again = createSqliteStore({ file, redact: (text) => text });
  const kept = again.latest('bd-next', 'log')?.seq === entry?.seq;
  again.close();
  return kept ? [] : ['what was committed next is lost'];
};

const checkJournal = async (
  file: string,
  promised: Promised,
  truth: Truth,
): Promise<readonly string[]> => {
  const store = await reading(() => createSqliteStore({ file, redact: (text) => text }));
  if (store instanceof Error) return [`the journal does not open: ${store.message}`];
  const problems = await reading(() => journalProblems(store, promised, truth));
  store.close();
  const next = await reading(() => nextCommit(file));
  return [problems, next].flatMap((found) => (found instanceof Error ? [String(found)] : found));
};

/**
 * The results of every attempt that was shown as complete: the newest in the task's folder, earlier
 * ones below it.
 */
const lostResults = (projectRoot: string, ends: readonly Entry[]): readonly string[] =>
  ends.flatMap(({ taskId, attempt }) => {
    const folder = join(projectRoot, '.beads', 'tasks', `task-${taskId}`);
    const kept = [folder, join(folder, 'attempts', String(attempt))]
      .map((place) => join(place, '30-results.md'))
      .some(
        (file) =>
          existsSync(file) && readFileSync(file, 'utf8').includes(`- Attempt: ${attempt}\n`),
      );
    return kept ? [] : [`the results of attempt ${attempt} of ${taskId} are lost`];
  });

const checkTracker = async (
  projectRoot: string,
  journal: string,
  promised: Promised,
  truth: Truth,
): Promise<readonly string[]> => {
  /** Each call sees what is on the disk. */
  const ask = async <Result>(question: (tracker: Embedded) => Promise<Result>): Promise<Result> => {
    const db = openDatabase({ file: journal });
    const ledger = ledgerAt(projectRoot, db);
    try {
      return await question(embeddedAt(projectRoot, { clock: () => 1 }, ledger));
    } finally {
      await ledger.exchange.stop();
      db.close();
    }
  };
  const reopened = new Set(
    truth.filter(({ cause }) => cause?.includes('"type":"reopen"')).map(({ taskId }) => taskId),
  );
  const tasks = await ask((tracker) => tracker.list());
  const listed = new Map(tasks.map((task) => [task.id as string, task]));
  const ends = truth.filter(({ type, seq }) => type === 'completed' && seq <= promised.shown);
  // A task that was opened again after its end may be anything.
  const closed = new Set(
    ends.filter(({ taskId }) => !reopened.has(taskId)).map(({ taskId }) => taskId),
  );
  const problems = [
    ...promised.created.filter((id) => !listed.has(id)).map((id) => `task ${id} is lost`),
    ...[...closed]
      .filter((id) => listed.get(id)?.status !== 'closed')
      .map((id) => `${id} was shown as complete and is ${listed.get(id)?.status}`),
    ...lostResults(projectRoot, ends),
  ];
  const made = await ask((tracker) =>
    tracker.create({
      title: 'next',
      description: 'next',
      dependencies: [],
      priority: 2,
      labels: [],
    }),
  ).catch((error: unknown) => String(error));
  if (typeof made === 'string') return [...problems, made];
  return (await ask((tracker) => tracker.find(made.id))) === null
    ? [...problems, 'what was created next is lost']
    : problems;
};

/**
 * What is wrong with an image, when the real store and the real tracker open it and go on with it.
 */
export const problemsOf = async (
  folder: string,
  promised: Promised,
  truth: Truth,
): Promise<readonly string[]> => {
  const state = join(folder, 'top', 'state');
  const file = join(state, 'journal.db');
  const isThere = existsSync(state);
  const lost = promised.shown > 0 ? ['the state folder is gone'] : [];
  const journal = isThere ? await checkJournal(file, promised, truth) : lost;
  mkdirSync(state, { recursive: true });
  return [...journal, ...(await checkTracker(join(folder, 'project'), file, promised, truth))];
};
