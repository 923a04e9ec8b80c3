import type { Answer } from '../port.ts';

export type Value = string | number | null;
export type Row = Readonly<Record<string, Value>>;

/** A statement that its database answers later. */
export interface Ask {
  readonly sql: string;
  readonly values: readonly Value[];
  /** The work goes on without the answer; what fails is said at the end of the transaction. */
  readonly isSent?: boolean;
}
/** Reads that need no answer of each other, so they wait once. */
export interface Asks {
  readonly together: readonly Ask[];
}
export interface Asked {
  readonly rows: readonly Row[];
  readonly changes: number;
  /** The answers to `Asks`, in their order. */
  readonly together?: readonly Asked[];
}

/**
 * Steps on rows, written once for every database: a generator that takes each result with `yield*`.
 * SQLite carries it out in one turn of the event loop, a database on a network with a wait at each
 * statement. Nothing happens before its result is taken.
 */
export type Work<Result> = Iterable<Ask | Asks, Result, Asked>;

export type WorkResult<Given> = Given extends Work<infer Result> ? Result : never;

export interface Statement {
  all(...values: readonly Value[]): Work<readonly Row[]>;
  first(...values: readonly Value[]): Work<Row | null>;
  /** Only inside `Database.write`. */
  run(...values: readonly Value[]): Work<{ readonly changes: number }>;
  /** As `run`, for a caller who needs no answer: such statements travel together. */
  send(...values: readonly Value[]): Work<unknown>;
}

export interface Transacting {
  /** `?` and `?1` stand for values, also where the database writes them in another way. */
  prepare(sql: string): Statement;
  /** Carries out reads. What is written between two of them may be seen. */
  ask<Result>(work: Work<Result>): Answer<Result>;
  /**
   * Runs `work` as one transaction, all or nothing; a second time when the first could not begin.
   * Writes keep their order, and no other one comes between the statements of a transaction.
   * @throws StoreError, or rejects with it, and what `work` throws
   */
  write<Result>(work: () => Work<Result>): Answer<Result>;
  /** Runs `work` on one state of the database, which nobody changes meanwhile. */
  read<Result>(work: () => Work<Result>): Answer<Result>;
}

interface TransactionFacts {
  /** False in a database of an earlier version that is only read. */
  has(table: string, column: string): Work<boolean>;
  /** Epoch ms, by the clock that all servers of the database share. */
  now(): Work<number>;
  lastSeq(): Work<number>;
  /** Inside a write that takes long: it may stand still for a while, and keep the others waiting. */
  mayPause(): Work<unknown>;
  /** Inside a write, when the journal has new entries. */
  added(lastSeq: number): Work<void>;
}

/** Rows that are written with the next write, whatever that is, in its transaction. */
export interface Riders {
  /** Null: none wait. */
  take(): { readonly write: () => Work<void>; readonly failed: () => void } | null;
}

/** Adds to each write the rows that wait at its call. They wait again when it fails. */
export const withRiders = (write: Transacting['write'], riders: () => Riders | null) =>
  ((work) => {
    const taken = riders()?.take() ?? null;
    if (taken === null) return write(work);
    const failed = (error: unknown): never => {
      taken.failed();
      throw error;
    };
    try {
      const answer = write(function* () {
        const result = yield* work();
        yield* taken.write();
        return result;
      });
      return answer instanceof Promise ? answer.catch(failed) : answer;
    } catch (error) {
      return failed(error);
    }
  }) as Transacting['write'];

/** The tables of a project: journal, actors, steps, requests, tasks. */
export interface Database extends Transacting, TransactionFacts {
  /** Set once. */
  carry(riders: Riders): void;
  /** Gives some free space back. @returns false when none is left */
  shrink(): Answer<boolean>;
  /** True while another program keeps it from being written. */
  isHeld(): boolean;
  /** False after `close`. */
  isOpen(): boolean;
  /** One sentence on whether it can be written. Never throws. */
  check(): Answer<{ readonly ok: boolean; readonly detail: string }>;
  close(): void;
}

/** A statement over as many values reads that many rows at once. */
const manyAtOnce = 200;
export const manyPlaces = Array.from({ length: manyAtOnce }, () => '?').join(', ');

/** The rows of a statement with `manyPlaces`. */
export const rowsOfMany = function* (
  statement: Statement,
  values: readonly Value[],
): Work<readonly Row[]> {
  const rows: Row[] = [];
  for (let from = 0; from < values.length; from += manyAtOnce) {
    const some = values.slice(from, from + manyAtOnce);
    const rest = Array.from({ length: manyAtOnce - some.length }, () => null);
    rows.push(...(yield* statement.all(...some, ...rest)));
  }
  return rows;
};

/** A result that is there already. */
export const known = <Result>(result: Result): Work<Result> => whenTaken(() => result);

/** Computes a result when it is taken. */
export const whenTaken = <Result>(compute: () => Result): Work<Result> => {
  const work = {
    // One object for each statement: an iterator of its own would be seen in the time of a commit.
    [Symbol.iterator]: itself,
    next: (): IteratorResult<Ask | Asks, Result> => ({ done: true, value: compute() }),
  };
  return work;
};
function itself<Iterator>(this: Iterator): Iterator {
  return this;
}

/** Takes works that only read side by side: what they ask at the same time is one wait. */
export const together = function* <Results extends readonly unknown[]>(
  works: {
    readonly [Index in keyof Results]: Work<Results[Index]>;
  },
): Work<Results> {
  const results: unknown[] = [];
  let asking: Asking[] = [];
  const take = (steps: Asking['steps'], at: number, step: IteratorResult<Ask | Asks>): void => {
    if (step.done === true) results[at] = step.value;
    else asking.push({ steps, at, asked: step.value });
  };
  for (const [at, work] of works.entries()) {
    const steps = work[Symbol.iterator]();
    take(steps, at, steps.next());
  }
  while (asking.length > 0) {
    const before = asking;
    asking = [];
    const answers = yield* answersTo(before.map(({ asked }) => asked));
    for (const [index, { steps, at }] of before.entries())
      take(steps, at, steps.next(answers[index] ?? noAnswer));
  }
  return results as unknown as Results;
};
interface Asking {
  readonly steps: Iterator<Ask | Asks, unknown, Asked>;
  readonly at: number;
  readonly asked: Ask | Asks;
}
const noAnswer: Asked = { rows: [], changes: 0 };

/** One answer to each; those to `Asks` hold one to each of theirs. */
const answersTo = function* (asked: readonly (Ask | Asks)[]): Work<readonly Asked[]> {
  const each = asked.map((one) => ('together' in one ? one.together : [one]));
  const { together: answers = [] } = yield { together: each.flat() };
  let at = 0;
  return each.map((asks, index) => {
    const own = answers.slice(at, at + asks.length);
    at += asks.length;
    return 'together' in (asked[index] ?? {})
      ? { ...noAnswer, together: own }
      : (own[0] ?? noAnswer);
  });
};

/** Goes on in the same turn when the answer is there. */
export const afterAnswer = <Given, Result>(
  answer: Answer<Given>,
  then: (given: Given) => Result,
): Answer<Awaited<Result>> | Result =>
  answer instanceof Promise ? (answer.then(then) as Promise<Awaited<Result>>) : then(answer);

const rowsAtOnce = 8;

/** Sends rows of the same columns, several in one statement. `onConflict` is its end. */
export const createRowInsert = (
  db: Pick<Database, 'prepare'>,
  {
    into,
    onConflict = '',
  }: { readonly into: `${string}(${string})`; readonly onConflict?: string },
): ((rows: readonly (readonly Value[])[]) => Work<void>) => {
  const statements = new Map<number, Statement>();
  const row = `(${into
    .split(',')
    .map(() => '?')
    .join(', ')})`;
  const statementOf = (count: number): Statement => {
    const known = statements.get(count);
    if (known !== undefined) return known;
    const rows = Array.from({ length: count }, () => row).join(', ');
    const prepared = db.prepare(`insert into ${into} values ${rows} ${onConflict}`);
    statements.set(count, prepared);
    return prepared;
  };
  return function* (rows) {
    if (rows.length === 1) return void (yield* statementOf(1).send(...(rows[0] ?? [])));
    for (let at = 0; at < rows.length; at += rowsAtOnce) {
      const some = rows.slice(at, at + rowsAtOnce);
      yield* statementOf(some.length).send(...some.flat());
    }
  };
};

const keysAtOnce = 8;

/**
 * Reads the rows that have one of some keys, up to eight in a statement. @param select ends with the
 * name of the column
 */
export const createRowRead = (
  db: Pick<Database, 'prepare'>,
  select: string,
): ((keys: readonly Value[]) => Work<readonly Row[]>) => {
  const one = db.prepare(`${select} = ?`);
  const many = db.prepare(`${select} in (${Array.from({ length: keysAtOnce }, () => '?')})`);
  return function* (keys) {
    const works = [];
    for (let from = 0; from < keys.length; from += keysAtOnce) {
      const some = keys.slice(from, from + keysAtOnce);
      const rest = Array.from({ length: keysAtOnce - some.length }, () => null);
      works.push(some.length === 1 ? one.all(...some) : many.all(...some, ...rest));
    }
    return (yield* together(works)).flat();
  };
};
