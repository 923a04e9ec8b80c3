import { z } from 'zod';
import { dayMs } from '../../machines/milliseconds.ts';
import type { Entry, SpentUsd } from './port.ts';
import type { Database, Work } from './rows.ts';

/** `run`: the run that the call counts for. */
const paidSchema = z.looseObject({
  assistant: z.string().optional(),
  cost_usd: z.number().optional(),
  run: z.string().optional(),
});

/** A call of our own loop, or what an assistant reported of its own. */
const paidIn = ({ type, data }: Pick<Entry, 'type' | 'data'>) => {
  if (type !== 'api_call_complete' && type !== 'usage') return null;
  const paid = paidSchema.safeParse(JSON.parse(data)).data;
  if (paid?.cost_usd === undefined || paid.cost_usd <= 0) return null;
  return type === 'usage' && paid.assistant === undefined ? null : paid;
};

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Runs are forgotten after this time; days are kept. */
const runsKeptMs = 400 * dayMs;

export interface SpendingRows {
  /** Inside the transaction of the entries, so that what a call cost is known when it is committed. */
  add(entries: readonly Entry[]): Work<void>;
  read(day: string, run: string | null): Work<SpentUsd>;
}

/**
 * One row for each day (`day:2026-11-27`) and each run (`run:2026-11-27T…`), whose ids begin with
 * their date: a budget is asked for without a look at tasks or attempts.
 */
export const createSpendingRows = (db: Database): SpendingRows => {
  const addTo = db.prepare(
    `insert into spending (scope, usd) values (?, ?)
     on conflict (scope) do update set usd = spending.usd + excluded.usd`,
  );
  const forget = db.prepare("delete from spending where scope >= 'run:' and scope < ?");
  const read = db.prepare(
    'select scope, usd from spending where scope = ? or (scope >= ? and scope <= ?)',
  );
  let lookedOn = '';
  return {
    *add(entries) {
      const sums = new Map<string, number>();
      for (const entry of entries) {
        const paid = paidIn(entry);
        if (paid === null) continue;
        const scopes = [`day:${dayOf(entry.at)}`];
        if (paid.run !== undefined) scopes.push(`run:${paid.run}`);
        for (const scope of scopes) sums.set(scope, (sums.get(scope) ?? 0) + (paid.cost_usd ?? 0));
        if (lookedOn === dayOf(entry.at)) continue;
        lookedOn = dayOf(entry.at);
        yield* forget.send(`run:${dayOf(entry.at - runsKeptMs)}`);
      }
      for (const [scope, usd] of sums) yield* addTo.send(scope, usd);
    },
    *read(day, run) {
      const ofRun = `run:${run ?? ''}`;
      const rows = yield* read.all(ofRun, `day:${day.slice(0, 7)}`, `day:${day.slice(0, 7)}~`);
      let [runUsd, dayUsd, monthUsd] = [0, 0, 0];
      for (const { scope, usd } of rows) {
        if (scope === ofRun) runUsd = Number(usd);
        else monthUsd += Number(usd);
        if (scope === `day:${day}`) dayUsd = Number(usd);
      }
      return { runUsd, dayUsd, monthUsd };
    },
  };
};
