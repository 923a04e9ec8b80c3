import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  type Car,
  carsToTest,
  type Evidence,
  type MergeQueueContext,
  type Proven,
} from '../../../machines/merge-queue/merge-queue-context.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
  type TaskId,
} from '../../../machines/task.ts';
import { writeFileAtomically } from '../../files/atomic-write.ts';
import type { CommandFolder, Regenerate, Workspace } from '../../workspace/port.ts';
import type { Settings } from '../attempts/settings.ts';
import type { createRegenerate, SetupWorktree } from '../attempts/setup-worktree.ts';
import { runVerifyCommand } from '../attempts/verify.ts';

/** The last trees that passed, each with what it was tested with; another start knows them, too. */
interface PassedTrees {
  find(test: TreeTest): Evidence | undefined;
  keep(test: TreeTest, evidence: Evidence): Promise<void>;
}

interface TreeTest {
  readonly tree: string;
  readonly commands: readonly string[];
  /** The commands of the setup. */
  readonly setup: readonly string[];
}

const passedSchema = z.array(
  z.tuple([z.string(), z.object({ tested_at: z.string(), tested_seconds: z.number() })]),
);

const treesAtMost = 500;
/** A test also sees programs of the machine, which change without the tree. */
const keptMs = 24 * 3_600_000;

/** A file that cannot be read knows nothing: trees are tested again. */
const readPassed = (file: string | null): z.infer<typeof passedSchema> => {
  try {
    return file === null ? [] : passedSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return [];
  }
};

const keyOf = ({ tree, commands, setup }: TreeTest): string =>
  createHash('sha256')
    .update(JSON.stringify([tree, commands, setup]))
    .digest('hex');

/** @param file null: they are forgotten with the process */
export const createPassedTrees = (file: string | null, now: () => number): PassedTrees => {
  const passed = new Map<string, Evidence>(readPassed(file));
  let writing = Promise.resolve();
  const isRecent = ({ tested_at }: Evidence): boolean => Date.parse(tested_at) > now() - keptMs;
  return {
    find: (test) => {
      const evidence = passed.get(keyOf(test));
      return evidence !== undefined && isRecent(evidence) ? evidence : undefined;
    },
    keep: async (test, evidence) => {
      passed.delete(keyOf(test));
      passed.set(keyOf(test), evidence);
      for (const [oldest] of [...passed].slice(0, -treesAtMost)) passed.delete(oldest);
      if (file === null) return;
      writing = writing
        .then(() => writeFileAtomically(file, JSON.stringify([...passed])))
        // It lands all the same.
        .catch(() => {});
      await writing;
    },
  };
};

type ProofPorts = Parameters<typeof runVerifyCommand>[0] & {
  readonly workspace: Pick<Workspace, 'inCandidate'>;
  readonly passed: PassedTrees;
  readonly settings: () => Pick<Settings, 'landing' | 'setup'>;
  readonly setupWorktree: SetupWorktree;
  readonly regenerate: ReturnType<typeof createRegenerate>;
  readonly closeNetwork: (key: AttemptKey) => void;
  /** The role and the options with which an attempt ran. */
  readonly attemptOf: (taskId: TaskId, attempt: number) => Promise<AttemptInput>;
};

export interface TrainProof {
  /** As of the workspace; with the role and the options of the attempts. */
  readonly regenerate: () => Regenerate;
  /** Tests the cars that are to be tested next. */
  prove(context: MergeQueueContext, signal: AbortSignal): Promise<Proven>;
  /**
   * Tests a tree with the work of one attempt; when it fails, the branch alone: `unblamed` where that
   * fails, too.
   */
  proveWork(
    side: Side & { readonly head: string; readonly headTree: string },
    attempt: AttemptInput,
    signal: AbortSignal,
  ): Promise<Proven & { readonly unblamed?: true }>;
  /** The commands that the work of these attempts must pass together. */
  commandsOf(attempts: readonly AttemptInput[]): readonly string[];
  readonly attemptOf: (taskId: TaskId, attempt: number) => Promise<AttemptInput>;
}

type Side = Pick<Car, 'commit' | 'tree'>;

const asProven = ({ message, facts }: Failure): Proven => ({
  passed: false,
  why: message,
  failed: { command: String(facts['command']), output: String(facts['output'] ?? '') },
  ...(facts['timed_out'] === true ? { hangs: true } : {}),
});

/**
 * A tree passes with the commands of `merge.verify` and those of the tasks in it, after the setup of a
 * worktree. One that passed is not tested again. A command that fails and then passes on the same tree
 * is flaky, which is told and refuses nothing.
 */
export const createTrainProof = (ports: ProofPorts): TrainProof => {
  const { workspace, passed, settings, setupWorktree, closeNetwork, attemptOf, emit } = ports;

  const runIn = async (
    folder: CommandFolder,
    attempt: AttemptInput,
    commands: readonly string[],
    signal: AbortSignal,
    log: (message: string) => void,
  ): Promise<Failure | null> => {
    const { timeoutMs } = settings().landing;
    const unprepared = await setupWorktree(
      attempt,
      { ...folder, isUsersCommit: false, isCandidate: true } as const,
      signal,
    );
    if (unprepared !== null) return unprepared;
    for (const command of commands) {
      const run = () => runVerifyCommand(ports, attempt, { command, folder, timeoutMs, signal });
      const failure = await run();
      if (failure === null) continue;
      if (failure.facts['timed_out'] === true) return failure;
      const again = await run();
      if (again !== null) return again;
      log(`flaky: ${command} failed, then passed on the same tree`);
    }
    return null;
  };

  const commandsOf: TrainProof['commandsOf'] = (attempts) => {
    const own = attempts.flatMap(({ options }) => options.verify ?? []);
    return [...new Set([...settings().landing.verify, ...own])];
  };

  const proveSide = async (
    side: Side,
    attempts: readonly AttemptInput[],
    what: string,
    signal: AbortSignal,
  ): Promise<Proven> => {
    const commands = commandsOf(attempts);
    const last = attempts.at(-1);
    if (last === undefined || commands.length === 0 || workspace.inCandidate === null)
      return { passed: true, commands: null };
    const test = { tree: side.tree, commands, setup: settings().setup?.commands ?? [] };
    const before = passed.find(test);
    if (before !== undefined) return { passed: true, commands, evidence: before };
    const log = (message: string): void => {
      for (const attempt of attempts) emit(attempt, 'log', { level: 'info', message });
    };
    const begun = performance.now();
    log(`tests tree ${side.tree.slice(0, 12)}, ${what}`);
    const failure = await workspace
      .inCandidate(side.commit, (folder) => runIn(folder, last, commands, signal, log), signal)
      .finally(() => closeNetwork(attemptKey(last.taskId, last.attempt)));
    if (failure !== null) return asProven(failure);
    const tested_seconds = Math.round((performance.now() - begun) / 100) / 10;
    const evidence = { tested_at: new Date().toISOString(), tested_seconds };
    await passed.keep(test, evidence);
    return { passed: true, commands, evidence };
  };

  const prove: TrainProof['prove'] = async ({ train, ...search }, signal) => {
    const count = carsToTest({ train, ...search });
    const cars = train?.cars.slice(0, Math.max(count, 1)) ?? [];
    const attempts = await Promise.all(
      cars.map(async ({ taskId, attempt, undoes }) => {
        const input = await attemptOf(taskId, attempt);
        // A task's own commands may test what is taken back.
        return undoes === undefined
          ? input
          : { ...input, options: { ...input.options, verify: [] } };
      }),
    );
    const side = count === 0 && train !== null ? { ...train, commit: train.head } : cars.at(-1);
    if (side === undefined) return { passed: true, commands: null };
    const together = cars.map(({ taskId }) => taskId).join(', ');
    const how = cars.some(({ undoes }) => undoes !== undefined) ? 'without' : 'with';
    const what = count === 0 ? 'the branch without it' : `the branch ${how} ${together}`;
    return proveSide(side, attempts, `${what}, before the project's branch moves`, signal);
  };
  const proveWork: TrainProof['proveWork'] = async (
    { head, headTree, ...side },
    attempt,
    signal,
  ) => {
    const proven = await proveSide(side, [attempt], 'its work with the branch', signal);
    if (proven.passed) return proven;
    if (proven.hangs) return { ...proven, unblamed: true };
    const alone = { commit: head, tree: headTree };
    const branch = await proveSide(alone, [attempt], 'the branch without it', signal);
    return branch.passed ? proven : { ...branch, unblamed: true };
  };
  const regenerate: TrainProof['regenerate'] = () => ({
    commands: settings().landing.regenerate,
    run: async ({ taskId, attempt }, ...rest) =>
      ports
        .regenerate(await attemptOf(taskId, attempt), ...rest)
        .finally(() => closeNetwork(attemptKey(taskId, attempt))),
  });
  return { prove, proveWork, commandsOf, attemptOf, regenerate };
};
