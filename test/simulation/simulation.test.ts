import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { transpileInto } from '../support/transpiled.ts';
import { runSeeds, runSeedsEverywhere } from './run-seeds.ts';
import type { Report } from './simulate.ts';

const minutes = 60_000;
/** One seed, to be looked at closely: its journal goes to a file. */
const wanted = process.env['AGENT_TEST_SEED'];
const count = wanted === undefined ? (isLong ? 10_000 : 5) : 1;
/** A world takes half a second of one core. */
const limit = (isLong ? 180 : 10) * minutes;
const first = wanted === undefined ? 1 + (Date.now() % 1_000_000) : Number(wanted);

const sum = (
  reports: readonly Report[],
  of: 'entries' | 'lives' | 'attempts' | 'completed' | 'virtualMs',
): number => reports.reduce((total, report) => total + (report[of] ?? 0), 0);

const found = ({ seed, violations }: Report): string =>
  `seed ${seed} (again: AGENT_TEST_SEED=${seed} npx vitest run test/simulation/simulation.test.ts): ${violations.join('\n')}`;

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-test-')));
  transpileInto(folder);
  return () => rmSync(folder, { recursive: true, force: true });
}, minutes);

test(`${count} simulated worlds from seed ${first}: whatever crashes, is late or comes twice, every invariant holds`, {
  timeout: limit,
}, async () => {
  const reports = await runSeedsEverywhere(folder, first, count);

  const days = Math.round(sum(reports, 'virtualMs') / 86_400_000);
  process.stdout.write(
    `seeds from ${first}: ${reports.length} worlds, ${days} days of their time, ${sum(reports, 'lives')} servers, ${sum(reports, 'attempts')} attempts, ${sum(reports, 'completed')} completed, ${sum(reports, 'entries')} frames\n`,
  );
  if (wanted !== undefined)
    writeFileSync(`simulation-${wanted}.log`, reports[0]?.log.join('\n') ?? '');
  expect(reports.filter(({ violations }) => violations.length > 0).map(found)).toEqual([]);
  expect(reports).toHaveLength(count);
  // Of a few worlds all may be poor ones.
  if (isLong && count > 1)
    expect(Math.min(sum(reports, 'completed'), sum(reports, 'lives') - count)).toBeGreaterThan(
      count / 2,
    );
});

const farCount = wanted === undefined ? (isLong ? 10_000 : 5) : 1;
const farFirst = wanted === undefined && !isLong ? 1 : first;

test(`${farCount} worlds from seed ${farFirst} over a store that answers late, stale, with an error or never`, {
  timeout: limit,
}, async () => {
  const reports = await runSeedsEverywhere(folder, farFirst, farCount, { store: 'far' });

  process.stdout.write(
    `far, from ${farFirst}: ${reports.length} worlds, ${sum(reports, 'lives')} servers, ${sum(reports, 'attempts')} attempts, ${sum(reports, 'completed')} completed\n`,
  );
  if (wanted !== undefined)
    writeFileSync(`simulation-far-${wanted}.log`, reports[0]?.log.join('\n') ?? '');
  expect(reports.filter(({ violations }) => violations.length > 0).map(found)).toEqual([]);
  expect(reports).toHaveLength(farCount);
  if (farCount > 1) expect(sum(reports, 'completed')).toBeGreaterThan(farCount / 2);
});

test('the same seed gives the same journal', { tags: ['slow'], timeout: minutes }, async () => {
  // In world 109 a server is started again while a check runs.
  const [once, again] = [await runSeeds(folder, 107, 110), await runSeeds(folder, 107, 110)];

  expect(again.map(({ hash }) => hash)).toEqual(once.map(({ hash }) => hash));
  expect(new Set(once.map(({ hash }) => hash)).size).toBeGreaterThan(2);
});
