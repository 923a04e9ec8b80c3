import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../machines/errors.ts';
import { createSerialQueue, QueueFullError, type Urgency } from '../../process/serial-queue.ts';
import { type BdAnswer, readBdAnswer } from './answer.ts';
import { type Detection, detectBd, locateBd } from './detect.ts';
import { bdEnvironment } from './environment.ts';
import { type BdFailure, bdFailure, type FailureKind, remedyFor } from './failure.ts';
import { runBd } from './runner.ts';
import { type BdCapabilities, capabilitiesOf } from './version.ts';

/**
 * One call of bd. `args` contain user text only as `--flag=value` or after `--`: bd would read a
 * leading dash as an option.
 */
export interface BdCall {
  readonly args: readonly string[];
  readonly input?: string;
  /**
   * `read`: changes nothing. `repeat`: repeating has no further effect. `once`: never repeated when
   * it may have happened.
   */
  readonly effect: 'read' | 'repeat' | 'once';
  /** In ms; default: the limit of its kind. */
  readonly timeoutMs?: number;
}

export type RunBd = (call: BdCall) => Promise<BdAnswer>;

export interface BdCalls {
  /** Runs `work` as one critical section. @throws tracker_unavailable when too many wait */
  alone<Result>(urgency: Urgency, work: (run: RunBd) => Promise<Result>): Promise<Result>;
  /** Detects bd again when its file has changed. */
  detect(): Promise<Detection>;
  /** @throws tracker_unavailable when bd is absent or broken */
  capabilities(): Promise<BdCapabilities>;
  /** Remembers that this bd lacks a feature, until another bd is installed. */
  lacks(what: string): void;
  isLacking(what: string): boolean;
  /** Null when the last call succeeded, and before the first. */
  lastFailure(): BdFailure | null;
}

export interface BdLimits {
  readonly versionMs: number;
  readonly readMs: number;
  readonly writeMs: number;
  readonly initMs: number;
}
export const defaultBdLimits: BdLimits = {
  versionMs: 5_000,
  readMs: 30_000,
  writeMs: 60_000,
  initMs: 120_000,
};

export interface CallsOptions {
  readonly projectRoot: string;
  readonly bdPath: string | null;
  readonly processEnv: NodeJS.ProcessEnv;
  readonly limits: BdLimits;
}

const callsWaitingAtMost = 200;
/** The number of retries of temporary failures. */
const triesAgain: Partial<Record<FailureKind, number>> = {
  lock: 6,
  stale: 3,
  crash: 2,
  server_down: 2,
};
const retryPauseMs = (tries: number): number =>
  Math.min(100 * 2 ** tries, 2_000) * (0.5 + Math.random() / 2);

export const bdUnavailable = (failure: BdFailure): ServiceError =>
  new ServiceError('tracker_unavailable', { detail: failure.words, remedy: remedyFor(failure) });

/** A write that must not be repeated is retried only when bd says that it did nothing. */
const mayRepeat = ({ effect }: BdCall, { kind }: BdFailure): boolean =>
  effect !== 'once' || kind === 'lock' || kind === 'stale';

/** Knows what the installed bd can do. Looks again when another bd takes its place. */
const createKnowledge = ({ projectRoot, bdPath, processEnv, limits }: CallsOptions) => {
  const env = bdEnvironment(processEnv);
  const stampNow = (): string | null => locateBd({ bdPath, processEnv })?.stamp ?? null;
  let known: { readonly stamp: string | null; readonly detection: Promise<Detection> } | null =
    null;
  let lacking = { stamp: null as string | null, what: new Set<string>() };

  const detect = (): Promise<Detection> => {
    const stamp = stampNow();
    if (known?.stamp !== stamp)
      known = {
        stamp,
        detection: detectBd({
          cwd: projectRoot,
          bdPath,
          processEnv,
          env,
          timeoutMs: limits.versionMs,
        }),
      };
    return known.detection;
  };

  const lackingNow = (): Set<string> => {
    const stamp = stampNow();
    if (lacking.stamp !== stamp) lacking = { stamp, what: new Set() };
    return lacking.what;
  };

  return {
    detect,
    capabilities: async () => {
      const found = await detect();
      if (found.state === 'ok') return capabilitiesOf(found.version);
      throw bdUnavailable(bdFailure(found.state, found.detail));
    },
    lacks: (what: string) => void lackingNow().add(what),
    isLacking: (what: string) => lackingNow().has(what),
  };
};

export const createBdCalls = ({
  projectRoot,
  bdPath,
  processEnv,
  limits,
}: CallsOptions): BdCalls => {
  /** Two bd processes at once make each other fail. */
  const queue = createSerialQueue(callsWaitingAtMost);
  const env = bdEnvironment(processEnv);
  const knowledge = createKnowledge({ projectRoot, bdPath, processEnv, limits });
  let last: BdFailure | null = null;

  const runOnce = async ({ args, input, effect, timeoutMs }: BdCall): Promise<BdAnswer> => {
    const program = locateBd({ bdPath, processEnv });
    if (program === null)
      return { failure: bdFailure('absent', `bd is not ${bdPath === null ? 'on PATH' : 'there'}`) };
    const usual = effect === 'read' ? limits.readMs : limits.writeMs;
    return readBdAnswer(
      await runBd({
        file: program.path,
        args,
        input,
        cwd: projectRoot,
        env,
        timeoutMs: timeoutMs ?? usual,
      }),
    );
  };

  const run: RunBd = async (call) => {
    for (let tries = 0; ; tries += 1) {
      const answer = await runOnce(call);
      last = 'failure' in answer ? answer.failure : null;
      if (!('failure' in answer)) return answer;
      const { failure } = answer;
      if (tries >= (triesAgain[failure.kind] ?? 0) || !mayRepeat(call, failure))
        return failure.kind === 'stale' ? readStale(call, answer) : answer;
      await delay(retryPauseMs(tries));
    }
  };

  /** With this flag bd reads a database that is older than its file. */
  const readStale = async (call: BdCall, answer: BdAnswer): Promise<BdAnswer> => {
    const found = await knowledge.detect();
    const can = found.state === 'ok' && capabilitiesOf(found.version).allowStale;
    if (!can || call.effect !== 'read') return answer;
    const [command = '', ...args] = call.args;
    return runOnce({ ...call, args: [command, '--allow-stale', ...args] });
  };

  return {
    alone: async (urgency, work) => {
      try {
        return await queue(() => work(run), { urgency });
      } catch (error) {
        if (!(error instanceof QueueFullError)) throw error;
        throw new ServiceError('tracker_unavailable', {
          detail: error.message,
          remedy: 'try again in a moment',
        });
      }
    },
    ...knowledge,
    lastFailure: () => last,
  };
};
