import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import {
  isErrorCode,
  isServiceError,
  type Refusal,
  ServiceError,
} from '../../../machines/errors.ts';
import { StoreAwayError, StoreError } from '../port.ts';
import type { Row, Work } from '../rows/rows.ts';
import type { PostgresDatabase } from './database.ts';

/** The largest request or answer. */
const mebibytesAtMost = 4;

const refusalSchema = z.object({ code: z.string(), facts: z.looseObject({}) });
const callReplySchema = z.object({
  result: z.unknown().optional(),
  refusal: refusalSchema.optional(),
});

const requireSmall = (text: string, what: string, remedy: string): string => {
  const mebibytes = Buffer.byteLength(text) / 1024 / 1024;
  if (mebibytes <= mebibytesAtMost) return text;
  const most = `${mebibytes.toFixed(1)} MiB; ${mebibytesAtMost} MiB is the most`;
  throw new ServiceError('internal', { detail: `${what} has ${most}; ${remedy}` });
};

/** @throws internal when they are too large */
const paramsText = (node: string, params: unknown): string =>
  requireSmall(
    JSON.stringify(params ?? null),
    `the request for the server ${node}`,
    'send it to that server',
  );

/** @throws internal when it is too large */
const callResultText = (node: string, result: unknown): string =>
  requireSmall(
    JSON.stringify({ result }),
    `the answer of the server ${node}`,
    'ask for a part of it, or ask that server',
  );

const callRefusalText = ({ code, facts }: ServiceError): string =>
  JSON.stringify({ refusal: { code, facts } });

/** The result in the text of an answer. @throws ServiceError what the other server refused */
const resultIn = (text: string): unknown => {
  const { result, refusal } = callReplySchema.parse(JSON.parse(text));
  if (refusal === undefined) return result;
  const { code } = refusal;
  if (isErrorCode(code)) throw ServiceError.from(refusal as Refusal);
  throw new ServiceError('internal', {
    detail: `a server of a later version refused it (${code})`,
  });
};

/** Carries out what another server asks. */
export type CallAnswer = (method: string, params: unknown) => Promise<unknown>;

/** Servers of one database ask each other through its rows (ADR 0114). */
export interface ServerCalls {
  /** From now on this server answers the others. Called once. */
  answerWith(answer: CallAnswer): void;
  /**
   * Lets another server carry out a method, at most once. `params` and the result are JSON.
   * @throws ServiceError that the other server threw; internal when it does not answer in time
   */
  ask(node: string, method: string, params: unknown, timeoutMs?: number): Promise<unknown>;
  /** Refuses all that comes from now on. Resolves when what others had asked is answered. */
  stop(): Promise<void>;
}

export interface ServerCallOptions {
  /** This start of the server. */
  readonly node: string;
  /** Removes secrets from every text. */
  readonly redact: (text: string) => string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const callTimeoutMs = 30_000;
const takeRetryMs = 1_000;
/** Rows of servers that ended stay for so long. */
const answersKeptMs = 5 * 60_000;
const callsAtOnce = 20;

const prepareCalls = (db: PostgresDatabase) => ({
  /** Repeated with the same id when the answer of the database was lost. */
  add: db.prepare(
    `insert into server_calls (id, node, asked_by, at, until, method, params)
     values (?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing`,
  ),
  remove: db.prepare(
    'delete from server_calls where until < ? or id in (select json_array_elements_text(?::json))',
  ),
  /** Repeated with the same token, it also gives what the first time took. */
  take: db.prepare(
    `update server_calls set taken = ?1 where id in (
       select id from server_calls
       where node = ?2 and (taken = ?1 or taken is null) and until > ?3
       order by taken nulls last, at, id limit ${callsAtOnce}
     ) returning id, asked_by, method, params, until - ?3 as left_ms`,
  ),
  answer: db.prepare('update server_calls set answer = ? where id = ? and answer is null'),
  answers: db.prepare(
    `select id, answer from server_calls
     where answer is not null and id in (select json_array_elements_text(?::json))
     limit ${callsAtOnce}`,
  ),
});

/** Tries again while the database is away. */
const untilThere = async <Result>(
  work: () => Promise<Result>,
  isWanted: () => boolean,
): Promise<Result> => {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreAwayError && isWanted())) throw error;
      await delay(takeRetryMs, undefined, { ref: false });
      if (!isWanted()) throw error;
    }
  }
};

/** One run of `work` at a time, and one more after it when it was called meanwhile. */
const createLook = (work: () => Promise<void>, failed: (error: unknown) => void) => {
  let isDue = false;
  let running: Promise<void> | null = null;
  const run = async (): Promise<void> => {
    while (isDue) {
      isDue = false;
      await work().catch(failed);
    }
    running = null;
  };
  return (): Promise<void> => {
    isDue = true;
    running ??= run();
    return running;
  };
};

const internal = (detail: string | null, cause?: unknown): ServiceError =>
  new ServiceError('internal', { detail }, { cause });
const asCallError = (error: unknown): ServiceError => {
  if (isServiceError(error)) return error;
  return internal(error instanceof StoreError ? error.message : null, error);
};

/** Carries out what others ask. */
const createCallAnswering = (
  db: PostgresDatabase,
  { node, redact, log }: ServerCallOptions,
  answer: CallAnswer,
  isStopped: () => boolean,
) => {
  const sql = prepareCalls(db);
  const running = new Set<Promise<void>>();

  const replyTo = async (method: string, params: string): Promise<string> => {
    try {
      if (isStopped()) throw internal(`the server ${node} is stopping; try again`);
      return callResultText(node, await answer(method, JSON.parse(params)));
    } catch (error) {
      if (!isServiceError(error)) log('a request of another server failed', { method, error });
      return callRefusalText(asCallError(error));
    }
  };
  const carryOut = async (row: Row): Promise<void> => {
    const until = performance.now() + Number(row['left_ms']);
    const method = String(row['method']);
    const text = redact(await replyTo(method, String(row['params'])));
    const write = async (): Promise<void> =>
      db.write(function* () {
        yield* sql.answer.send(text, String(row['id']));
        yield* db.tell('answer', String(row['asked_by']));
      });
    try {
      await untilThere(write, () => performance.now() < until);
    } catch (error) {
      log('could not save an answer to another server', { method, error });
    }
  };
  const takeSome = (): Promise<readonly Row[]> => {
    const token = randomUUID();
    const take = async (): Promise<readonly Row[]> =>
      db.write(function* () {
        return yield* sql.take.all(token, node, yield* db.now());
      });
    return untilThere(take, () => !isStopped());
  };
  const look = createLook(
    async () => {
      let rows: readonly Row[];
      do {
        rows = await takeSome();
        for (const row of rows) {
          const work = carryOut(row).finally(() => running.delete(work));
          running.add(work);
        }
      } while (rows.length === callsAtOnce);
    },
    (error) => log('could not read the requests of other servers', { error }),
  );
  return { look, whenDone: () => Promise.all(running) };
};

interface AskedCall {
  readonly resolve: (answer: string) => void;
  readonly reject: (error: ServiceError) => void;
}

/** Waits for what others answer. */
const createAsking = (
  db: PostgresDatabase,
  { node, redact, log }: ServerCallOptions,
  isStopped: () => boolean,
) => {
  const sql = prepareCalls(db);
  const waiting = new Map<string, AskedCall>();
  /** Their rows are removed with the next call. */
  let answered: string[] = [];
  const stopping = (): ServiceError => internal('this server is stopping; try again');

  const readSome = async (): Promise<readonly Row[]> =>
    db.ask(sql.answers.all(JSON.stringify([...waiting.keys()])));
  const look = createLook(
    async () => {
      let rows: readonly Row[] = [];
      do {
        if (waiting.size === 0) return;
        rows = await untilThere(readSome, () => waiting.size > 0);
        for (const row of rows) {
          const id = String(row['id']);
          waiting.get(id)?.resolve(String(row['answer']));
          waiting.delete(id);
          answered.push(id);
        }
      } while (rows.length === callsAtOnce);
    },
    (error) => log('could not read the answers of other servers', { error }),
  );

  const ask: ServerCalls['ask'] = async (to, method, params, timeoutMs = callTimeoutMs) => {
    if (isStopped()) throw stopping();
    const text = redact(paramsText(to, params));
    const id = randomUUID();
    const add = function* (): Work<void> {
      const now = yield* db.now();
      yield* sql.remove.send(now - answersKeptMs, JSON.stringify(answered));
      answered = [];
      yield* sql.add.send(id, to, node, now, now + timeoutMs, method, text);
      yield* db.tell('call', to);
    };
    let isAsked = false;
    const late = (): ServiceError => {
      const problem = isAsked
        ? 'did not answer'
        : 'could not be asked, since the database did not answer,';
      return internal(
        `the server ${to} ${problem} within ${timeoutMs / 1_000} s; look at the task before you try again`,
      );
    };
    const answer = new Promise<string>((resolve, reject) => waiting.set(id, { resolve, reject }));
    const timer = setTimeout(() => waiting.get(id)?.reject(late()), timeoutMs);
    const added = untilThere(
      async () => db.write(add),
      () => waiting.has(id),
    ).then(() => {
      isAsked = true;
      return answer;
    });
    try {
      return resultIn(await Promise.race([answer, added]));
    } catch (error) {
      throw asCallError(error);
    } finally {
      clearTimeout(timer);
      waiting.delete(id);
    }
  };
  return {
    ask,
    look,
    stop: () => {
      for (const { reject } of waiting.values()) reject(stopping());
    },
  };
};

/** The tables are there. One for each database. */
export const createServerCalls = (
  db: PostgresDatabase,
  options: ServerCallOptions,
): ServerCalls => {
  let isStopped = false;
  const asking = createAsking(db, options, () => isStopped);
  let answering: ReturnType<typeof createCallAnswering> | null = null;
  db.onCalls({
    node: options.node,
    called: () => void answering?.look(),
    answered: () => void asking.look(),
  });
  return {
    answerWith: (answer) => {
      answering = createCallAnswering(db, options, answer, () => isStopped);
      // The listening connection may have looked before.
      void answering.look();
    },
    ask: asking.ask,
    stop: async () => {
      isStopped = true;
      asking.stop();
      await answering?.look();
      await answering?.whenDone();
      db.onCalls(null);
    },
  };
};
