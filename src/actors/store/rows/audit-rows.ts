import { createHash, randomUUID } from 'node:crypto';
import type { Answer } from '../port.ts';
import { afterAnswer, type Database, type Row, type Work } from './rows.ts';
import { lazy } from './store-statements.ts';
import { textOrNull } from './stored-entry.ts';

/** What a person or a client asked for. Never holds a token, or text of a task. */
export interface AuditFacts {
  /** Epoch ms. */
  readonly at: number;
  /** The name of the token; `owner`: the token of the server. */
  readonly name: string;
  /** `cli`, `page`, `a2a`, `mcp` or `rpc`. */
  readonly via: string;
  readonly address: string;
  /** A method, an operation or a route. */
  readonly action: string;
  readonly taskId: string | null;
  /** Its other subject, such as the name of a token. */
  readonly about: string | null;
  /**
   * `allowed`: written no later than what came of it. `done`: names a task that came of it.
   * `forbidden`, or the code of the error: nothing more came of it.
   */
  readonly outcome: string;
}

/** A line as it is kept; each has the hash of the one before. */
export interface AuditLine extends AuditFacts {
  /** 1, 2, 3, without a gap. */
  readonly seq: number;
  readonly id: string;
  readonly previous: string;
  readonly hash: string;
}

/** A line that is written with the next write of the database. */
export interface PendingLine {
  /** What came of it: in the line while it waits, else in a further one. */
  ended(outcome: string): void;
  isWaiting(): boolean;
}

export interface AuditRequest {
  /** Epoch ms. */
  readonly since: number;
  readonly taskId: string | null;
  /** Only lines with a higher seq. */
  readonly after: number;
  readonly limit: number;
}

export interface Audit {
  /** The line is in the transaction of the next write, so no later than the change that it is about. */
  add(facts: AuditFacts): PendingLine;
  /** Writes what waits. */
  flush(): Answer<void>;
  page(request: AuditRequest): Answer<readonly AuditLine[]>;
  /** The last line that was written, as kept apart from the lines; null: none was. */
  end(): Answer<Pick<AuditLine, 'seq' | 'hash'> | null>;
}

/** SHA-256 over every field of the line and the hash of the line before, hexadecimal. */
export const hashOfLine = (line: Omit<AuditLine, 'hash'>): string => {
  const { seq, id, at, name, via, address, action, taskId, about, outcome, previous } = line;
  const fields = [seq, previous, id, at, name, via, address, action, taskId, about, outcome];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
};

interface WaitingLine {
  readonly id: string;
  facts: AuditFacts;
  /** Waiting, or in a transaction that is not over. */
  state: 'waiting' | 'taken';
  /** A write with it failed; that may have been after its commit. */
  mayBeThere: boolean;
}

const lineOf = (row: Row): AuditLine => ({
  seq: Number(row['seq']),
  id: String(row['id']),
  at: Number(row['at']),
  name: String(row['name']),
  via: String(row['via']),
  address: String(row['address']),
  action: String(row['action']),
  taskId: textOrNull(row, 'task_id'),
  about: textOrNull(row, 'about'),
  outcome: String(row['outcome']),
  previous: String(row['previous']),
  hash: String(row['hash']),
});

const textAtMost = 300;
/**
 * Facts that every database takes, and gives back as they are. Other writes carry the lines: one that
 * is refused would stop all of them.
 */
const storable = (facts: AuditFacts): AuditFacts => {
  const text = (given: unknown): string =>
    String(given)
      .replaceAll(/[^\x20-\x7e]/g, '?')
      .slice(0, textAtMost);
  const { at, name, via, address, action, taskId, about, outcome } = facts;
  return {
    at,
    name: text(name),
    via: text(via),
    address: text(address),
    action: text(action),
    taskId: taskId === null ? null : text(taskId),
    about: about === null ? null : text(about),
    outcome: text(outcome),
  };
};

const endKey = 'audit_end';

const prepareAudit = (db: Database) => ({
  has: db.prepare('select 1 as one from audit where id = ?'),
  add: db.prepare('insert into audit values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
  last: db.prepare('select max(seq) as seq from audit'),
  end: db.prepare(`select value from ledger where key = '${endKey}'`),
  setEnd: db.prepare(
    `insert into ledger (key, value) values ('${endKey}', ?)
     on conflict (key) do update set value = excluded.value`,
  ),
  page: db.prepare('select * from audit where seq > ? and at >= ? order by seq limit ?'),
  ofTask: db.prepare(
    'select * from audit where task_id = ? and seq > ? and at >= ? order by seq limit ?',
  ),
});

/** The log of a database; made once for each that is opened. */
export const createAudit = (db: Database): Audit => {
  const sql = lazy(() => prepareAudit(db));
  let waiting: WaitingLine[] = [];

  const readEnd = function* (): Work<Pick<AuditLine, 'seq' | 'hash'> | null> {
    const value = (yield* sql().end.first())?.['value'];
    if (value === undefined) return null;
    const [seq, hash = ''] = String(value).split(' ');
    return { seq: Number(seq), hash };
  };
  /** Goes on also where somebody changed the end: the lines then show it. */
  const whereToAdd = function* () {
    const { seq, hash } = (yield* readEnd()) ?? { seq: 0, hash: '' };
    const last = Number((yield* sql().last.first())?.['seq'] ?? 0);
    return { seq: Math.max(seq, last), hash };
  };
  const write = function* (lines: readonly WaitingLine[]): Work<void> {
    let { seq, hash } = yield* whereToAdd();
    for (const { id, facts, mayBeThere } of lines) {
      if (mayBeThere && (yield* sql().has.first(id)) !== null) continue;
      const line = { ...storable(facts), id, seq: seq + 1, previous: hash };
      seq = line.seq;
      hash = hashOfLine(line);
      const { at, name, via, address, action, taskId, about, outcome, previous } = line;
      yield* sql().add.send(
        ...[seq, id, at, name, via, address, action, taskId, about, outcome, previous, hash],
      );
    }
    yield* sql().setEnd.send(`${seq} ${hash}`);
  };

  db.carry({
    take: () => {
      if (waiting.length === 0) return null;
      const lines = waiting;
      waiting = [];
      for (const line of lines) line.state = 'taken';
      return {
        write: () => write(lines),
        failed: () => {
          for (const line of lines) Object.assign(line, { state: 'waiting', mayBeThere: true });
          waiting = [...lines, ...waiting];
        },
      };
    },
  });

  const add = (facts: AuditFacts): PendingLine => {
    const line: WaitingLine = { id: randomUUID(), facts, state: 'waiting', mayBeThere: false };
    waiting.push(line);
    return {
      isWaiting: () => line.state === 'waiting',
      ended: (outcome) => {
        const isHere = line.state === 'waiting' && !line.mayBeThere;
        if (isHere) line.facts = { ...line.facts, outcome };
        else add({ ...line.facts, outcome });
      },
    };
  };
  return {
    add,
    flush: () => {
      if (waiting.length === 0) return undefined;
      return db.write(function* () {});
    },
    page: ({ since, taskId, after, limit }) =>
      afterAnswer(
        db.ask(
          taskId === null
            ? sql().page.all(after, since, limit)
            : sql().ofTask.all(taskId, after, since, limit),
        ),
        (rows) => rows.map(lineOf),
      ),
    end: () => db.ask(readEnd()),
  };
};
