import { plural } from '../../machines/plural.ts';
import type { AttemptInput } from '../../machines/task.ts';
import type { SetUp } from '../agent/open-attempt.ts';
import { isPresent } from '../workspace/plain.ts';
import type { Absent, Workspace } from '../workspace/port.ts';
import { createSetupWorktree, type SetupPorts } from './setup-worktree.ts';

const pathsNamedAtMost = 5;

const firstPaths = (paths: readonly string[]): string =>
  paths.length > pathsNamedAtMost
    ? `${paths.slice(0, pathsNamedAtMost).join(', ')} and ${paths.length - pathsNamedAtMost} more`
    : paths.join(', ');

interface SetupMessage {
  readonly level: 'info' | 'warn';
  readonly message: string;
}

/** Warnings for a person before the agent begins, each with what to do. */
const absentLogs = (
  { uncommitted, ignored, install }: Absent,
  lacksPackages: boolean,
): readonly SetupMessage[] => [
  ...(uncommitted.length === 0
    ? []
    : [
        {
          level: 'warn' as const,
          message: `not in the worktree: ${plural(uncommitted.length, 'uncommitted file')} (${firstPaths(uncommitted)}); commit what the agent needs`,
        },
      ]),
  ...(ignored.length === 0
    ? []
    : [
        {
          level: 'info' as const,
          message: `not in the worktree: ${firstPaths(ignored)}, which git ignores; name what the agent needs in workspace.copy`,
        },
      ]),
  ...(lacksPackages && install !== null
    ? [
        {
          level: 'warn' as const,
          message: `not in the worktree: node_modules; to install it in each new one: agent config set workspace.setup '${JSON.stringify({ commands: [install], network: true })}'`,
        },
      ]
    : []),
];

type SetUpFolderPorts = SetupPorts & {
  readonly workspace: Pick<Workspace, 'setups' | 'absent'>;
};

/** Sets up a new folder, and says what it lacks. */
export const createSetUp = (ports: SetUpFolderPorts): SetUp => {
  const setupWorktree = createSetupWorktree(ports);
  return async (attempt: AttemptInput, workspace, signal) => {
    const [absent, failure] = await Promise.all([
      ports.workspace.absent(signal),
      setupWorktree(attempt, workspace, signal),
    ]);
    const lacksPackages =
      absent.install !== null && !(await isPresent(`${workspace.root}/node_modules`));
    if (failure === null)
      for (const told of absentLogs(absent, lacksPackages)) ports.emit(attempt, 'log', told);
    const notes = lacksPackages
      ? ['The packages that this project depends on are not installed in your folder.']
      : [];
    return { failure, notes };
  };
};
