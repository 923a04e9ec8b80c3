import { type Report, simulate } from './simulate.ts';
import type { Traits } from './traits.ts';

/**
 * Simulates the seeds from the first argument to before the second and prints one line of JSON for
 * each: its report, with the journal only for a single seed. A third argument, `far`, puts the
 * store far away; a fourth, JSON, fixes traits of the worlds. The first seed that breaks something
 * is the last.
 */
const [from = 1, to = from + 1] = process.argv.slice(2, 4).map(Number);
const isFar = process.argv[4] === 'far';
const fixed = JSON.parse(process.argv[5] ?? '{}') as Partial<Traits>;

const failed = (seed: number, error: unknown): Partial<Report> => ({
  seed,
  violations: [`the simulation broke: ${error instanceof Error ? error.stack : error}`],
});

process.on('unhandledRejection', (error) => {
  process.stdout.write(`${JSON.stringify(failed(-1, error))}\n`);
});

for (let seed = from; seed < to; seed += 1) {
  const report = await simulate(seed, isFar, fixed).catch((error: unknown) => failed(seed, error));
  process.stdout.write(`${JSON.stringify(to - from === 1 ? report : { ...report, log: [] })}\n`);
  if (report.violations?.length !== 0) break;
}
