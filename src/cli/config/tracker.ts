import { randomInt } from 'node:crypto';
import type { Ledger } from '../../actors/ledger/ledger.ts';
import { type BdCalls, createBdCalls, defaultBdLimits } from '../../actors/tracker/bd/calls.ts';
import { createTracker } from '../../actors/tracker/select-tracker.ts';
import type { Config } from './schema/config-schema.ts';

export type TrackerLog = (message: string, facts: Readonly<Record<string, unknown>>) => void;

export const trackerFor = (
  { tracker: { mode, bd_path, actor } }: Config,
  projectRoot: string,
  env: NodeJS.ProcessEnv,
  log: TrackerLog,
  ledger: () => Ledger,
  redact: (text: string) => string,
) =>
  createTracker({
    projectRoot,
    mode,
    actor,
    bdPath: bd_path ?? null,
    processEnv: env,
    clock: () => Date.now(),
    random: (max) => randomInt(max),
    log,
    ledger,
    redact,
  });

export const bdFor = (
  { tracker: { bd_path } }: Config,
  projectRoot: string,
  env: NodeJS.ProcessEnv,
): BdCalls =>
  createBdCalls({ projectRoot, bdPath: bd_path ?? null, processEnv: env, limits: defaultBdLimits });
