import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { inject } from 'vitest';
import type { Ledger } from '../../src/actors/ledger/ledger.ts';
import { createTracker } from '../../src/actors/tracker/select-tracker.ts';
import { temporaryFolder } from './temporary.ts';

const script = fileURLToPath(new URL('./fake-bd/fake-bd.sh', import.meta.url));

export type Family = 'A-direct' | 'A-daemon' | '0.59.0' | 'C' | 'D' | 'wrapper' | 'old';
export const families: readonly Family[] = [
  'A-direct',
  'A-daemon',
  '0.59.0',
  'C',
  'D',
  'wrapper',
  'old',
];

/** The fault of the fake for the next `times` calls that begin with `on`. */
export interface Fault {
  readonly kind: string;
  readonly on?: string;
  readonly times?: number;
  readonly [key: string]: unknown;
}

export interface FakeBd {
  /** The folder to put on PATH, with `bd` in it. */
  readonly bin: string;
  readonly path: string;
  /** Every call so far: its arguments and the names in its environment. */
  calls(): { argv: string[]; env: string[]; pid: number }[];
  fail(...faults: Fault[]): void;
}

/** An executable `bd` that answers like a real one of this family. */
export const makeBd = (family: Family): FakeBd => {
  const bin = temporaryFolder();
  const [path, calls, faults] = [
    join(bin, 'bd'),
    join(bin, 'calls.jsonl'),
    join(bin, 'faults.json'),
  ];
  const setup = JSON.stringify({ family, calls, faults });
  const words = [String(inject('bdHost')), process.execPath, setup, faults]
    .map((word) => `'${word}'`)
    .join(' ');
  writeFileSync(path, `#!/bin/bash\nset -- ${words} "$@"\n. '${script}'\n`);
  chmodSync(path, 0o755);
  return {
    bin,
    path,
    calls: () =>
      existsSync(calls)
        ? readFileSync(calls, 'utf8')
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => JSON.parse(line))
        : [],
    fail: (...planned) => writeFileSync(faults, JSON.stringify(planned)),
  };
};

/** A script as `bd`, for broken ones. */
export const makeBroken = (script: string): string => {
  const path = join(temporaryFolder(), 'bd');
  writeFileSync(path, script);
  chmodSync(path, 0o755);
  return path;
};

/** A call of bd by a person, outside the service. */
export const bdIn = async (bd: FakeBd, cwd: string, ...args: string[]): Promise<string> => {
  const { stdout } = await execa(bd.path, args, { cwd, reject: false });
  return stdout;
};

/** A project that keeps its tasks in this bd. */
export const makeBdProject = async (bd: FakeBd): Promise<string> => {
  const root = temporaryFolder();
  mkdirSync(join(root, '.beads'), { mode: 0o700 });
  await bdIn(bd, root, 'init', '--prefix=bd', '--quiet');
  return root;
};

/** The tracker of a system whose project keeps its tasks in this bd. */
export const bdTracker = (bd: FakeBd) => (projectRoot: string, ledger: Ledger) =>
  createTracker({
    projectRoot,
    ledger: () => ledger,
    mode: 'auto',
    bdPath: bd.path,
    processEnv: process.env,
    redact: (text) => text,
    clock: () => Date.now(),
    random: (max) => Math.floor(Math.random() * max),
    log: () => {},
  });

/** A task as bd has it. */
export const inBd = async (bd: FakeBd, root: string, id: string) =>
  JSON.parse(await bdIn(bd, root, 'show', '--json', '--', id))[0] as Record<string, unknown>;
