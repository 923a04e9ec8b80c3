import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Failure,
} from '../../../machines/task.ts';
import type { CommandFolder, MergeProof } from '../../workspace/port.ts';
import type { Settings } from './settings.ts';
import type { SetupWorktree } from './setup-worktree.ts';
import { runVerifyCommand } from './verify.ts';

export type ProofPorts = Parameters<typeof runVerifyCommand>[0] & {
  readonly settings: () => Pick<Settings, 'landing' | 'setup'>;
  readonly setupWorktree: SetupWorktree;
  readonly closeNetwork: (key: AttemptKey) => void;
};

/** The proof of the work of an attempt; undefined: no command is known. */
export type ProofOf = (attempt: AttemptInput) => MergeProof | undefined;

const treesAtMost = 500;

/**
 * A tree passes with the commands of `merge.verify` and those of the task itself, after the setup of a
 * worktree. One that passed is not tested again. A command that fails and then passes on the same tree
 * is flaky, which is told and refuses nothing.
 */
export const createProofs = (ports: ProofPorts): ProofOf => {
  /** The last trees that passed, with commands and setup. */
  const passed = new Set<string>();
  const remember = (key: string): void => {
    passed.delete(key);
    passed.add(key);
    for (const oldest of passed) {
      if (passed.size <= treesAtMost) break;
      passed.delete(oldest);
    }
  };
  const log = (attempt: AttemptInput, message: string): void =>
    ports.emit(attempt, 'log', { level: 'info', message });

  const test = async (
    attempt: AttemptInput,
    commands: readonly string[],
    folder: CommandFolder,
    signal: AbortSignal,
  ): Promise<Failure | null> => {
    const { timeoutMs } = ports.settings().landing;
    const opened = { ...folder, isUsersCommit: false };
    const unprepared = await ports.setupWorktree(attempt, opened, signal);
    if (unprepared !== null) return unprepared;
    for (const command of commands) {
      const run = () => runVerifyCommand(ports, attempt, { command, folder, timeoutMs, signal });
      const failure = await run();
      if (failure === null) continue;
      if (failure.facts['timed_out'] === true) return failure;
      const again = await run();
      if (again !== null) return again;
      log(attempt, `flaky: ${command} failed, then passed on the same tree`);
    }
    return null;
  };
  return (attempt) => {
    const { landing, setup } = ports.settings();
    const commands = [...new Set([...landing.verify, ...(attempt.options.verify ?? [])])];
    if (commands.length === 0) return undefined;
    const keyOf = (tree: string): string => JSON.stringify([tree, commands, setup?.commands]);
    return {
      commands,
      hasPassed: (tree) => passed.has(keyOf(tree)),
      run: async (folder, tree, signal) => {
        log(attempt, `tests tree ${tree.slice(0, 12)} before the project's branch moves to it`);
        const failure = await test(attempt, commands, folder, signal).finally(() =>
          ports.closeNetwork(attemptKey(attempt.taskId, attempt.attempt)),
        );
        if (failure === null) {
          remember(keyOf(tree));
          return null;
        }
        const { command, output = '' } = failure.facts;
        return {
          why: `with the project's branch as it is now, ${failure.message}`,
          failed: { command: String(command), output: String(output) },
        };
      },
    };
  };
};
