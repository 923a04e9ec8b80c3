import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../machines/errors.ts';
import { createSerialQueue, QueueFullError, type Urgency } from '../../process/serial-queue.ts';
import { type BdAnswer, readBdAnswer } from './answer.ts';
import {
  type BdFailure,
  bdFailure,
  classifyBdText,
  type FailureKind,
  remedyFor,
} from './failure.ts';
import { type BdProgram, programAt, programOnPath } from './program.ts';
import { runBd } from './runner.ts';

/** Such as `[0, 49, 6]`. */
type Version = readonly [number, number, number];

const parseVersion = (text: string): Version | null => {
  const [, major, minor, patch] = /\bv?(\d+)\.(\d+)\.(\d+)/.exec(text) ?? [];
  return patch === undefined ? null : [Number(major), Number(minor), Number(patch)];
};

const isAtLeast = (version: Version, text: string): boolean => {
  const other = parseVersion(text) ?? [0, 0, 0];
  const index = version.findIndex((part, at) => part !== other[at]);
  return index === -1 || (version[index] ?? 0) > (other[index] ?? 0);
};

/** Features by the first release that has them; bd fails on unknown flags. */
interface BdCapabilities {
  /** `create --body-file=-`: the description on stdin. */
  readonly bodyFile: boolean;
  /** `list --json` prints a tree without `--flat`. */
  readonly flat: boolean;
  /** `--allow-stale`: read although the file is newer than the database. */
  readonly allowStale: boolean;
  readonly initFromJsonl: boolean;
  readonly initSkipAgents: boolean;
  readonly initNonInteractive: boolean;
}

const oldestSupported = '0.42.0';

const isSupported = (version: Version): boolean => isAtLeast(version, oldestSupported);

/**
 * An unreadable version counts as one with everything that all late versions have, and nothing that
 * any lacks.
 */
const capabilitiesOf = (version: Version | null): BdCapabilities => {
  const has = (tag: string): boolean => version !== null && isAtLeast(version, tag);
  return {
    bodyFile: version === null || has('0.30.3'),
    flat: has('0.59.0') && !has('0.60.0'),
    allowStale: version !== null && !has('0.59.0'),
    initFromJsonl: has('0.41.0'),
    initSkipAgents: has('0.61.0'),
    initNonInteractive: has('1.0.0'),
  };
};

type Detection =
  | { readonly state: 'absent'; readonly detail: string }
  | { readonly state: 'broken'; readonly program: BdProgram; readonly detail: string }
  /** `version` is null when it could not be read. */
  | {
      readonly state: 'ok';
      readonly program: BdProgram;
      readonly version: Version | null;
      readonly detail: string;
    };

interface DetectOptions {
  readonly cwd: string;
  /** Absolute; null: searched on PATH. */
  readonly bdPath: string | null;
  readonly processEnv: NodeJS.ProcessEnv;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

const locateBd = ({
  bdPath,
  processEnv,
}: Pick<DetectOptions, 'bdPath' | 'processEnv'>): BdProgram | null =>
  bdPath === null ? programOnPath('bd', processEnv) : programAt(bdPath);

const describeVersion = (version: Version): string =>
  isSupported(version)
    ? `bd ${version.join('.')}`
    : `bd ${version.join('.')}, which is older than ${oldestSupported}: tasks are marked by status, not claimed; install a newer one`;

/** Runs `bd version`, which needs no database and creates none. */
const detectBd = async (options: DetectOptions): Promise<Detection> => {
  const { cwd, bdPath, env, timeoutMs } = options;
  const program = locateBd(options);
  if (program === null)
    return {
      state: 'absent',
      detail:
        bdPath === null
          ? 'bd is not on PATH'
          : `there is no program at ${bdPath} (tracker.bd_path)`,
    };
  const output = await runBd({ file: program.path, args: ['version'], cwd, env, timeoutMs });
  if (output.exitCode === 0) {
    const version = parseVersion(output.stdout);
    const detail = version === null ? 'bd of an unknown version' : describeVersion(version);
    return { state: 'ok', program, version, detail };
  }
  const { words } = classifyBdText(output.stderr || output.stdout);
  const why = output.timedOut ? bdFailure('timeout', 'it did not answer in time').words : words;
  const ended = output.startError ?? `exit code ${output.exitCode ?? output.signal}`;
  return { state: 'broken', program, detail: `bd is installed but does not work: ${why || ended}` };
};

const inheritedVariables: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'TZ',
  'TMPDIR',
  'SSH_AUTH_SOCK',
  'GIT_AUTHOR_NAME',
  'GIT_AUTHOR_EMAIL',
  'GIT_COMMITTER_NAME',
  'GIT_COMMITTER_EMAIL',
  'SystemRoot',
  'APPDATA',
]);
const inheritedPrefixes = ['LC_', 'XDG_', 'BEADS_DOLT_'];

/**
 * No daemon, no pager, no metrics, one JSON form. A bd that does not know one of these ignores it.
 */
const bdSettings = {
  BEADS_NO_DAEMON: '1',
  BEADS_AUTO_START_DAEMON: 'false',
  BD_NON_INTERACTIVE: '1',
  BD_LAST_TOUCHED_FALLBACK: '0',
  BD_JSON_ENVELOPE: '1',
  BD_NO_PAGER: '1',
  NO_COLOR: '1',
  BD_DISABLE_METRICS: '1',
  BD_DISABLE_EVENT_FLUSH: '1',
  DO_NOT_TRACK: '1',
} as const;

/**
 * The environment of every bd: an allow-list, so that no provider key and no `BEADS_DIR` of another
 * project gets in.
 */
const bdEnvironment = (from: NodeJS.ProcessEnv): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(
    Object.entries(from).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined &&
        (inheritedVariables.has(entry[0]) ||
          inheritedPrefixes.some((prefix) => entry[0].startsWith(prefix))),
    ),
  ),
  ...bdSettings,
});

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
