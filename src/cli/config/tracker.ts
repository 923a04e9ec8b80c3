import { randomInt } from 'node:crypto';
import { createTracker } from '../../actors/tracker/select-tracker.ts';
import type { Config } from './config-schema.ts';

type Log = (message: string, facts: Readonly<Record<string, unknown>>) => void;

export const trackerFor = (
  { tracker: { mode, bd_path, actor } }: Config,
  projectRoot: string,
  env: NodeJS.ProcessEnv,
  log: Log,
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
  });
