import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Report } from './simulate.ts';

/** Where the store of the simulated server is. */
export type Distance = 'near' | 'far';

/**
 * Simulates seeds in a process of its own, from a folder of `transpileInto`; ends with the first
 * that breaks something.
 */
export const runSeeds = async (
  folder: string,
  from: number,
  to: number,
  store: Distance = 'near',
): Promise<readonly Report[]> => {
  const args = [join(folder, 'test', 'simulation', 'main.js'), String(from), String(to), store];
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
  store: Distance = 'near',
): Promise<readonly Report[]> => {
  const share = Math.ceil(count / availableParallelism());
  const begins = Array.from({ length: Math.ceil(count / share) }, (_, n) => from + n * share);
  const runs = begins.map((begin) =>
    runSeeds(folder, begin, Math.min(begin + share, from + count), store),
  );
  return (await Promise.all(runs)).flat();
};
