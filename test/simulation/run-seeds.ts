import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Report } from './simulate.ts';
import type { Traits } from './traits.ts';

/** Where the store of the simulated server is. */
export type Distance = 'near' | 'far';

/** What all seeds of a run have in common. */
export interface Worlds {
  readonly store?: Distance | undefined;
  readonly world?: Partial<Traits> | undefined;
}

/**
 * Simulates seeds in a process of its own, from a folder of `transpileInto`; ends with the first
 * that breaks something.
 */
export const runSeeds = async (
  folder: string,
  from: number,
  to: number,
  { store = 'near', world = {} }: Worlds = {},
): Promise<readonly Report[]> => {
  const program = join(folder, 'test', 'simulation', 'main.js');
  const args = [program, String(from), String(to), store, JSON.stringify(world)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const reports: Report[] = [];
  for await (const line of createInterface({ input: child.stdout }))
    reports.push(JSON.parse(line) as Report);
  return reports;
};

/** The same on every core, each with a share of the seeds. */
export const runSeedsEverywhere = async (
  folder: string,
  from: number,
  count: number,
  worlds: Worlds = {},
): Promise<readonly Report[]> => {
  const share = Math.ceil(count / availableParallelism());
  const begins = Array.from({ length: Math.ceil(count / share) }, (_, n) => from + n * share);
  const runs = begins.map((begin) =>
    runSeeds(folder, begin, Math.min(begin + share, from + count), worlds),
  );
  return (await Promise.all(runs)).flat();
};
